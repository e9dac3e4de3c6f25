#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lab/scores.h"
#include "lab/sweep.h"
#include "lab/workload.h"

namespace pleat {

/// What a plan wrote to a question of the workload.
struct ScoredAnswer {
    size_t sequence = 0;
    std::string text = {};
    ProbeResult result = {};
};

/// Scores of some plans: [plan][measure], measures as the workload names them.
struct PlanScores {
    std::vector<std::vector<ItemScores>> by_plan;
    std::vector<std::vector<ScoredAnswer>> answers = {};  ///< [plan][question], if there are any
    uint64_t peak_bytes = 0;                              ///< of residual streams
    bool complete = true;  ///< false: stopped by the caller, and then there are no scores
};

/// Gives numbers to plans, many at once.
///
/// - nll: negative log-likelihood of the next token, nats; its exp is the perplexity
/// - kl: Kullback-Leibler divergence of the plan's next-token distribution from the reference's,
///   sum p_ref log(p_ref / p_plan), nats (Kullback and Leibler 1951)
/// - top1: 1 where the plan's likeliest token is the reference's
/// - exact: 1 where every token of the answer is the likeliest
/// - answer_nll: negative log-likelihood of the answer, by token
/// - probe, exact, parsed, length_ok, cut of answers that the plan writes: ProbeResult, 1 or 0
///
/// All sums in double. A score does not depend on which other plans are scored, but for the
/// rounding of kernels that see another number of rows (Sweep says where there is none).
class Scorer {
  public:
    Scorer(std::shared_ptr<Model> model, SweepSettings settings);

    /// Fraction of the work done; false stops.
    using Progress = std::function<bool(double fraction)>;

    /// Scores plans on some of the workload's sequences (all when `sequences` is empty). The first
    /// plan is the reference of kl and top1.
    PlanScores score(const std::vector<LayerPlan>& plans, const Workload& workload,
                     std::span<const size_t> sequences = {}, const Progress& progress = {}) const;

    const SweepSettings& settings() const { return settings_; }

  private:
    struct Found;
    bool score_read(Found& found, const Progress& progress) const;
    bool score_answered(Found& found, const Progress& progress) const;

    std::shared_ptr<Model> model_;
    SweepSettings settings_;
};

/// A ranking by answers that nobody can read would rank noise: asks the identity plan some of the
/// workload's questions before the long run begins. Throws Error that names the kind of which fewer
/// than `min_parse` of the answers can be read.
void require_readable_answers(const Scorer& scorer, const LayerPlan& identity, Workload workload,
                              double min_parse);

/// What greedy decoding takes: the first token with the greatest logit.
int32_t likeliest(std::span<const float> logits);

/// log of the sum of exponentials of a row of logits, in double.
double log_sum_exp(std::span<const float> logits);

/// KL(reference || plan) in nats of two rows of logits.
double kl_divergence(std::span<const float> reference, std::span<const float> plan);
/// The same where log_sum_exp(reference) is known.
double kl_divergence(std::span<const float> reference, double lse_reference,
                     std::span<const float> plan);

}  // namespace pleat
