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

/// A token sequence to run from its beginning, and the positions whose logits are wanted.
struct SweepItem {
    std::vector<int32_t> tokens;
    std::vector<int32_t> rows;  ///< ascending
};

struct SweepSettings {
    ContextSettings context;                      ///< threads, flash attention, cache types
    uint64_t memory_budget = uint64_t{1} << 30U;  ///< bytes of residual streams held at a time
    uint32_t rows_per_batch = 512;                ///< tokens that run together, whole sequences
};

/// Runs many plans over many sequences as one: what plans have in common is computed once, and all
/// plans that are due at a layer ride in one batch.
///
/// The logits are those that a Context of the plan gives for the same sequences in ubatches of
/// rows_per_batch tokens, in every bit where kernels do not depend on the number of rows: in
/// practice where every sequence has a multiple of 4 tokens and at least 8.
class Sweep {
  public:
    /// The first plan is the reference: of every item its logits come first. Throws Error as
    /// Context does. Models that a PassRunner does not take run plan by plan.
    Sweep(std::shared_ptr<Model> model, std::vector<LayerPlan> plans, SweepSettings settings);

    /// Called once per plan and item, except that the reference may come again (with the same
    /// logits) before other plans. F32 [rows][n_vocab], valid in the call.
    using OnLogits = std::function<void(size_t plan, size_t item, std::span<const float> logits)>;
    /// Called when all plans have had these items; what was kept of the reference can go.
    using OnDone = std::function<void(size_t first_item, size_t n)>;
    /// Passes done of passes due; false stops.
    using Progress = std::function<bool(uint64_t done, uint64_t total)>;

    /// Runs all items, which must be of one length. Returns false when stopped by `progress`.
    /// Throws Error when the budget does not hold one sequence of one plan.
    bool run(std::span<const SweepItem> items, const OnLogits& on_logits,
             const OnDone& on_done = {}, const Progress& progress = {});

    /// Sequence passes that a run over one item computes, and what plan by plan would take.
    uint64_t passes_per_item() const;
    uint64_t passes_per_item_alone() const;
    /// Greatest number of bytes of residual streams held so far.
    uint64_t peak_bytes() const { return peak_bytes_; }

  private:
    struct Part {
        PlanTree tree;
        std::vector<size_t> plans;  ///< of the whole list; the reference first
    };
    struct Run;

    std::vector<Part> parts(uint32_t n_tokens) const;
    void run_part(const Part& part, std::span<const SweepItem> items, size_t first_item, Run& run);
    bool run_alone(std::span<const SweepItem> items, const OnLogits& on_logits,
                   const OnDone& on_done, const Progress& progress);

    std::shared_ptr<Model> model_;
    std::vector<LayerPlan> plans_;
    SweepSettings settings_;
    bool plan_by_plan_ = false;
    uint64_t peak_bytes_ = 0;
};

}  // namespace pleat
