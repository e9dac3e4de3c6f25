#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/context.h"
#include "engine/pass_runner.h"
#include "lab/plan_tree.h"
#include "model/model.h"
#include "plan/plan.h"

namespace pleat {

/// Runs a prompt under many plans of one model: what they have in common is computed once.
class Prefill {
  public:
    /// For contexts of n_ctx tokens, which decide the RoPE of some models. `rows_per_batch`: tokens
    /// that run together, unless a prompt alone has more. Throws Error when a PassRunner does not
    /// take the model.
    Prefill(std::shared_ptr<Model> model, const std::vector<LayerPlan>& plans,
            ContextSettings settings, uint32_t n_ctx, uint32_t rows_per_batch = 512);

    /// `on_pass` comes for every pass of every plan, by its place in the plan's path, while the
    /// runner holds what the pass made of the prompt as its sequence `sequence`. `on_logits` comes
    /// once per plan: F32 [n_vocab] after the prompt's last token, valid in the call.
    struct Receiver {
        std::function<void(size_t plan, size_t index, const PassRunner& runner, size_t sequence)>
            on_pass;
        std::function<void(size_t plan, std::span<const float> logits)> on_logits;
    };
    void run(std::span<const int32_t> prompt, const Receiver& receiver);

    /// Most bytes that a prompt of so many tokens takes beside the weights: residual streams, K/V
    /// and states of a batch. The compute buffer comes on top.
    uint64_t bytes(size_t n_tokens) const;
    /// Streams of n_tokens that run together, and their tokens.
    uint32_t n_together(size_t n_tokens) const;
    size_t n_rows(size_t n_tokens) const { return n_together(n_tokens) * n_tokens; }
    /// Greatest number of bytes held so far, compute buffer included.
    uint64_t peak_bytes() const { return peak_bytes_; }

  private:
    ContextSettings runner_settings(size_t n_tokens) const;

    std::shared_ptr<Model> model_;
    ContextSettings settings_;
    uint32_t n_ctx_;
    uint32_t rows_per_batch_;
    PlanTree tree_;
    size_t widest_step_ = 1;
    struct Passage {
        size_t plan = 0;
        size_t index = 0;
    };
    std::vector<std::vector<Passage>> passages_;  ///< by node: the plans that go through it
    uint64_t peak_bytes_ = 0;
};

}  // namespace pleat
