#pragma once

#include <ggml-cpp.h>
#include <ggml.h>

#include <cstdint>
#include <vector>

namespace pleat {

/// A K/V stream that is attended to by itself.
struct StreamShape {
    uint32_t stream = 0;
    uint32_t n_kv_full = 0;
    uint32_t n_kv_window = 0;
    bool operator==(const StreamShape&) const = default;
};

/// What a graph's tensors depend on: two ubatches of equal shape run the same graph.
struct GraphShape {
    uint32_t n_tokens = 0;
    uint32_t n_outputs = 0;
    uint32_t n_streams = 1;
    uint32_t first_stream = 0;
    uint32_t n_kv_full = 0;    ///< cells of the full cache that are looked at
    uint32_t n_kv_window = 0;  ///< and of the window cache; 0 = the plan has no such slots
    uint32_t n_seqs = 1;       ///< of an equal split
    /// Row of the first sequence's state when all follow each other; -1 = they lie anywhere.
    int32_t first_state = -1;
    /// One attention operation for each stream, in the order of their tokens; the stream numbers
    /// above then say nothing but how many there are. Empty: one operation over all.
    std::vector<StreamShape> apart = {};
    bool head = true;  ///< with logits; else it ends at the hidden states
    bool operator==(const GraphShape&) const = default;
};

/// What one attention operation sees of a cache: consecutive streams.
struct KvView {
    uint32_t first_stream = 0;
    uint32_t n_streams = 1;
    uint32_t n_kv = 0;
    ggml_tensor* mask = nullptr;  ///< [n_kv, n_stream_tokens, 1, n_streams], 0 or -inf
};

/// Inputs for the slots of one cache kind.
struct KvInputs {
    ggml_tensor* k_cells = nullptr;  ///< I64 [n_tokens]: rows to write, over all streams
    ggml_tensor* v_cells =
        nullptr;                  ///< the same, or I64 [n_tokens * n_embd_v] where V is transposed
    ggml_tensor* mask = nullptr;  ///< [n_kv, n_stream_tokens, 1, n_streams], 0 or -inf
    ggml_tensor* rotation_k = nullptr;  ///< F32 [n, n] Hadamard matrix, quantised K only
    ggml_tensor* rotation_v = nullptr;
    uint32_t n_kv = 0;
    std::vector<KvView> apart = {};  ///< of GraphShape::apart; then n_kv and mask are not used
};

/// Some rows of a graph in which every row is a sequence of its own; they take passes together.
struct RowSet {
    uint32_t n_rows = 0;
    ggml_tensor* rows = nullptr;          ///< I32 [n_rows], to read; null: all, in their order
    ggml_tensor* rows_written = nullptr;  ///< I64 [n_rows]: the same, to write
    ggml_tensor* positions = nullptr;     ///< as Graph::positions
    KvInputs full = {};                   ///< a stream each, from 0 on
    KvInputs window;
};

/// A built graph. The tensors belong to `context`; their memory to the scheduler that allocated it.
struct Graph {
    GraphShape shape;
    ggml_context_ptr context;
    ggml_cgraph* nodes = nullptr;
    ggml_tensor* tokens = nullptr;       ///< I32 [n_tokens]
    ggml_tensor* positions = nullptr;    ///< I32 [n_tokens]; IMROPE four runs of n_tokens
    ggml_tensor* output_rows = nullptr;  ///< I32 [n_outputs]
    ggml_tensor* residual_in = nullptr;  ///< of a graph of one pass: F32 [n_embd, n_tokens]
    ggml_tensor* residual = nullptr;     ///< and what the pass makes of it, unless it is the last
    KvInputs full;
    KvInputs window;
    ggml_tensor* state_rows = nullptr;          ///< I32 [n_seqs]: states to read
    ggml_tensor* state_rows_written = nullptr;  ///< I64 [n_seqs]: the same rows, to write
    std::vector<RowSet> row_sets;               ///< of a graph of many paths
    ggml_tensor* hidden = nullptr;              ///< after the final norm, F32 [n_embd, n_outputs]
    ggml_tensor* logits = nullptr;              ///< F32 [n_vocab, n_outputs]; null without a head
};

}  // namespace pleat
