#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/kv_cache.h"
#include "cache/ubatch.h"
#include "graph/graph.h"

namespace pleat {

/// Fills what a graph reads of a ubatch: tokens, positions, wanted rows, rows of states.
void set_inputs(const Graph& graph, const Ubatch& ubatch);

/// Fills which rows a set has, and the positions of their tokens.
void set_rows(const RowSet& set, std::span<const size_t> rows, std::span<const int32_t> positions);

/// What the slots of one cache kind need, whichever graph reads it.
struct KvInputValues {
    std::vector<int64_t> k_cells;
    std::vector<int64_t> v_cells;     ///< where V lies transposed; else as k_cells
    std::vector<ggml_fp16_t> mask16;  ///< with flash attention; of all views, in their order
    std::vector<float> mask32;        ///< without
};

/// `apart`: each stream's mask has the cells of that stream alone; else all have n_kv.
KvInputValues kv_input_values(const KvCache& cache, const Ubatch& ubatch,
                              const Placement& placement, bool apart = false);
/// For one token of each of several sequences, whose streams follow each other from 0 on, and in
/// which a token's cell is its position.
KvInputValues single_token_values(const KvCache& cache, std::span<const int32_t> positions,
                                  uint32_t n_kv, uint32_t n_swa);
/// Fills cells to write, mask and rotations.
void set_kv_inputs(const KvInputs& inputs, const KvCache& cache, const KvInputValues& values);

}  // namespace pleat
