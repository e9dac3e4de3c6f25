#pragma once

#include "cache/kv_cache.h"
#include "cache/ubatch.h"
#include "graph/graph.h"

namespace pleat {

/// Fills what a graph reads of a ubatch: tokens, positions, wanted rows, rows of states.
void set_inputs(const Graph& graph, const Ubatch& ubatch);

/// Fills what the slots of one cache kind need: cells to write, mask, rotations.
void set_kv_inputs(const KvInputs& inputs, const KvCache& cache, const Ubatch& ubatch,
                   const Placement& placement);

}  // namespace pleat
