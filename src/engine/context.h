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
    /// Sequences that share a ubatch attend one by one, each over its own cells and with the
    /// kernel and threads it would have alone, so that its bits do not depend on the others as far
    /// as attention goes. Else as stock does: one operation over all of them.
    bool attend_apart = false;
};

/// What a decode computes of the tokens that ask for output.
enum class Outputs : uint8_t { logits, hidden };

/// What rewinding a sequence to its first `length` tokens needs where it has recurrent layers.
struct Snapshot {
    int32_t length = 0;
    std::vector<std::byte> states = {};
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
    DecodeStatus decode(std::span<const BatchToken> batch, Outputs outputs = Outputs::logits);
    /// Tokens of one sequence from next_position on; logits of the last one only, or of all.
    DecodeStatus decode(int32_t sequence, std::span<const int32_t> tokens,
                        bool all_outputs = false);

    /// Results of the last decode, by order of the tokens that asked for output.
    size_t n_outputs() const { return n_outputs_; }
    std::span<const float> logits(size_t output) const;  ///< F32 [n_vocab]
    /// F32 [n_embd], after the final norm; of a decode with Outputs::hidden.
    std::span<const float> hidden(size_t output) const;

    int32_t next_position(int32_t sequence) const;
    /// Takes positions [begin, end) from a sequence; end < 0 means all from begin on. Throws Error
    /// where that cannot be: a recurrent state cannot be cut back, and a window cache no further
    /// than what it still holds.
    void remove(int32_t sequence, int32_t begin = 0, int32_t end = -1);
    /// Makes `to` begin with what `from` holds at positions [0, end); `to` must be empty. end < 0
    /// means all. Without a unified cache the data is copied. Throws Error as remove does.
    void copy(int32_t from, int32_t to, int32_t end = -1);
    void clear();

    /// Where a sequence has its cache to itself (not unified, or the only one) it can be made what
    /// it was at `length` tokens: tokens that follow lie in the same cells, find the same states,
    /// and give the very bits that they would have given then. Needs a snapshot of that length
    /// where layers are recurrent; window layers must still hold what lies in front.
    bool can_rewind(int32_t sequence, int32_t length, const Snapshot* snapshot = nullptr) const;
    /// Throws Error where that cannot be.
    void rewind(int32_t sequence, int32_t length, const Snapshot* snapshot = nullptr);
    /// Of a sequence as it is now.
    Snapshot snapshot(int32_t sequence) const;
    bool has_states() const { return !states_.empty(); }

    /// Stops a running decode from another thread or a signal handler; the next decode starts anew.
    void cancel() { cancelled_.store(true, std::memory_order_relaxed); }

    uint64_t cache_bytes() const { return full_.bytes() + window_.bytes() + states_.bytes(); }
    uint64_t compute_bytes() const { return executor_.buffer_bytes(); }
    /// Graphs built so far: a test of reuse.
    uint64_t n_graphs_built() const { return n_graphs_built_; }

  private:
    void check_sequence(int32_t sequence) const;
    void check_output(size_t output, size_t n) const;
    void check(std::span<const BatchToken> batch) const;
    bool window_reaches(int32_t sequence, int32_t position) const;
    DecodeStatus decode_chunk(std::span<const BatchToken> batch, size_t first_row, Outputs outputs,
                              KvCache::Undo* window_undo);
    std::vector<StreamShape> streams_apart(const Ubatch& ubatch, const Placement& full,
                                           const Placement& window) const;
    int n_threads(const Ubatch& ubatch) const;
    void take_outputs(const Graph& graph, const Ubatch& ubatch, size_t first_row);
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
