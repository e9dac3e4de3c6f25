#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cache/kv_cache.h"
#include "cache/state_cache.h"
#include "engine/context.h"
#include "engine/executor.h"
#include "engine/inputs.h"
#include "graph/builder.h"
#include "model/model.h"
#include "plan/plan.h"

namespace pleat {

/// Runs single passes over the residual streams of whole sequences, many at once, whatever plan
/// each belongs to. All sequences are of one length and start at position 0, so a pass needs its
/// K/V or state only while it runs: one slot serves all layers that are alike. Layers that read the
/// K/V of others or bring embeddings of their own are not for it.
///
/// What it computes for `n` sequences is what a Context computes for a ubatch of them.
class PassRunner {
  public:
    /// Can the model's passes run apart from their plan?
    static bool takes(const Model& model);

    /// `settings.cache.n_ctx` is the length of every sequence, `n_seq` how many run together.
    /// Loads all layers. Throws Error as Context does, and for a model that it does not take.
    /// RoPE is that of contexts of n_ctx tokens, where those are longer than the sequences.
    PassRunner(std::shared_ptr<Model> model, ContextSettings settings, uint32_t n_ctx = 0);

    /// Bytes of K/V and states that a runner with these settings has.
    static uint64_t cache_bytes(const Model& model, const ContextSettings& settings);

    uint32_t n_tokens() const { return n_tokens_; }  ///< of each sequence
    uint32_t n_seq() const { return settings_.cache.n_seq; }
    /// Elements of one sequence's residual stream.
    size_t residual_size() const { return size_t{n_tokens_} * model_->hparams().n_embd; }

    /// The streams before the first pass, from n_tokens tokens a sequence.
    void embed(std::span<const std::span<const int32_t>> tokens,
               std::span<const std::span<float>> residuals);
    /// One pass over up to n_seq streams, F32 [n_embd, n_tokens] each.
    void run(const Pass& pass, std::span<const std::span<const float>> in,
             std::span<const std::span<float>> out);
    /// The last pass of a path and the head. `rows[s]`: positions of sequence s whose logits are
    /// wanted, ascending; on_logits(s, logits) gets them, F32 [n_rows][n_vocab], valid in the call.
    using OnLogits = std::function<void(size_t sequence, std::span<const float> logits)>;
    void finish(const Pass& pass, std::span<const std::span<const float>> in,
                std::span<const std::span<const int32_t>> rows, const OnLogits& on_logits);

    /// What the last pass has made, of sequence s in stream or row s: K/V of n_tokens cells, or
    /// states. `layer`: of that pass.
    const KvCache::Slots& kv(int32_t layer) const {
        const int32_t slot = slot_of(layer);
        return (window_.has(slot) ? window_ : full_).slot(slot);
    }
    const StateCache::Slots& states(int32_t layer) const { return states_.slot(slot_of(layer)); }

    uint64_t buffer_bytes() const {
        return full_.bytes() + window_.bytes() + states_.bytes() + executor_.buffer_bytes();
    }

  private:
    /// Inputs that depend on the number of sequences alone.
    struct Layout {
        Ubatch ubatch;
        KvInputValues full;
        KvInputValues window;
        GraphShape shape;
    };
    int32_t slot_of(int32_t layer) const { return slots_[static_cast<size_t>(layer)]; }
    const Layout& layout(size_t n_seq);
    Graph build(const Pass& pass, bool last, const GraphShape& shape) const;
    Caches caches() const { return {.full = full_, .window = window_, .states = states_}; }
    void compute(const Graph& graph, const Layout& layout,
                 std::span<const std::span<const float>> in,
                 const std::vector<int32_t>& output_rows);

    std::shared_ptr<Model> model_;
    ContextSettings settings_;
    LayerPlan distinct_;          ///< one of all layers that are alike to a cache
    std::vector<int32_t> slots_;  ///< by layer
    uint32_t n_tokens_;
    KvCache full_;
    KvCache window_;
    StateCache states_;
    ggml_tensor* rope_factors_ = nullptr;
    Placement full_placement_;
    Placement window_placement_;
    std::vector<std::unique_ptr<Layout>> layouts_;  ///< by number of sequences
    Executor executor_;
    std::vector<float> logits_;
};

}  // namespace pleat
