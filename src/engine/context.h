#pragma once

#include <ggml-cpp.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cache/kv_cache.h"
#include "cache/state_cache.h"
#include "engine/batch.h"
#include "engine/executor.h"
#include "graph/builder.h"
#include "graph/graph.h"
#include "model/model.h"
#include "plan/cost.h"
#include "plan/plan.h"

namespace pleat {

enum class FlashAttention { automatic, on, off };

struct ContextSettings {
    CacheSettings cache;  ///< n_ctx 0 = the model's own
    uint32_t n_batch = 2048;
    FlashAttention flash_attention = FlashAttention::automatic;
    int n_threads = 1;        ///< for single-token steps
    int n_threads_batch = 1;  ///< for ubatches of more than one token
};

enum class [[nodiscard]] DecodeStatus{
    ok,
    cache_full,  ///< the batch does not fit; nothing of it was kept
    cancelled,   ///< cancel() was called; nothing of the batch was kept
};

/// A model under one plan, with its cache and graphs. Belongs to one thread; contexts of one
/// process take turns, since only one graph computes at a time. Several contexts share a Model's
/// weights.
class Context {
  public:
    /// Loads what the plan needs and allocates the cache. Throws Error when settings do not go
    /// together, or when the cache would not fit into free memory (with both numbers).
    Context(std::shared_ptr<Model> model, LayerPlan plan, ContextSettings settings,
            const LoadProgress& progress = {});
    ~Context();
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

    const Model& model() const { return *model_; }
    const LayerPlan& plan() const { return plan_; }
    const ContextSettings& settings() const { return settings_; }
    uint32_t n_vocab() const { return model_->hparams().n_vocab; }
    uint32_t n_embd() const { return model_->hparams().n_embd; }

    /// Runs a batch. Positions of each sequence continue where it ends (next_position), one by one.
    /// A batch of more than n_batch tokens is cut into several. Throws Error on a token, position
    /// or sequence out of range, and when the backend fails.
    DecodeStatus decode(std::span<const BatchToken> batch);
    /// Tokens of one sequence from next_position on; logits of the last one only, or of all.
    DecodeStatus decode(int32_t sequence, std::span<const int32_t> tokens,
                        bool all_outputs = false);

    /// Results of the last decode, by order of the tokens that asked for output.
    size_t n_outputs() const { return n_outputs_; }
    std::span<const float> logits(size_t output) const;  ///< F32 [n_vocab]
    std::span<const float> hidden(size_t output) const;  ///< F32 [n_embd], after the final norm

    int32_t next_position(int32_t sequence) const;
    /// Takes positions [begin, end) from a sequence; end < 0 means all from begin on. Throws Error
    /// where that cannot be: a recurrent state cannot be cut back, and a window cache no further
    /// than what it still holds.
    void remove(int32_t sequence, int32_t begin = 0, int32_t end = -1);
    /// Makes `to` begin with what `from` holds at positions [0, end); `to` must be empty. end < 0
    /// means all. Without a unified cache the data is copied. Throws Error as remove does.
    void copy(int32_t from, int32_t to, int32_t end = -1);
    void clear();

    /// Stops a running decode from another thread or a signal handler; the next decode starts anew.
    void cancel() { cancelled_.store(true, std::memory_order_relaxed); }

    uint64_t cache_bytes() const { return full_.bytes() + window_.bytes() + states_.bytes(); }
    uint64_t compute_bytes() const { return executor_.buffer_bytes(); }
    /// Graphs built so far: a test of reuse.
    uint64_t n_graphs_built() const { return n_graphs_built_; }

  private:
    void check_sequence(int32_t sequence) const;
    void check(std::span<const BatchToken> batch) const;
    bool window_reaches(int32_t sequence, int32_t position) const;
    DecodeStatus decode_chunk(std::span<const BatchToken> batch, size_t first_row,
                              KvCache::Undo* window_undo);
    const Graph& graph_for(const GraphShape& shape);
    void reserve();
    Caches caches() const { return {.full = full_, .window = window_, .states = states_}; }
    /// What a batch may have to go back to when it is cancelled.
    struct Before {
        std::map<int32_t, std::vector<std::byte>> states;  ///< by sequence
        std::optional<KvCache::Undo> window;
    };
    Before save_before(std::span<const BatchToken> batch) const;
    int32_t first_state(const Ubatch& ubatch) const;
    void check_window(int32_t sequence, int32_t begin, int32_t end, int32_t length) const;

    std::shared_ptr<Model> model_;
    LayerPlan plan_;
    ContextSettings settings_;
    KvCache full_;
    KvCache window_;
    StateCache states_;
    ggml_tensor* rope_factors_ = nullptr;
    UbatchSplit split_ = UbatchSplit::runs;
    Executor executor_;
    std::optional<Graph> graph_;
    uint64_t n_graphs_built_ = 0;
    std::atomic<bool> cancelled_ = false;

    size_t n_outputs_ = 0;
    std::vector<int32_t> output_of_row_;  ///< by batch row, -1 = none
    std::vector<float> logits_;
    std::vector<float> hidden_;
};

}  // namespace pleat
