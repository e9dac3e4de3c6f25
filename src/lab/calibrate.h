#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lab/profile.h"
#include "lab/scores.h"
#include "lab/trials.h"
#include "plan/cost.h"
#include "plan/plan.h"
#include "plan/shape.h"

namespace pleat {

/// Layers that lose their attention together.
using DropGroup = std::vector<int32_t>;

/// What may lose its attention next, where `dropped` has lost it already: one layer each, by
/// ascending layer; with the owner of shared K/V go all who still read it. Recurrent layers never,
/// and in a hybrid nothing that would leave no attention.
std::vector<DropGroup> drop_candidates(const ModelShape& shape, std::span<const int32_t> dropped);

/// The plan without the attention of these layers, and its one-line SPEC (empty: the identity).
LayerPlan drop_plan(const ModelShape& shape, std::span<const int32_t> dropped);
std::string drop_spec(std::span<const int32_t> dropped);

/// How far drops may go. All that are given hold together; at least one must be.
struct DropLimits {
    std::optional<double> max_loss = {};  ///< rise of the perplexity: 0.01 = 1 %
    std::optional<double> max_kl = {};    ///< mean KL to the identity plan, nats per token
    std::optional<double> keep_kv = {};   ///< stop at this share of the identity's KV bytes a token
    double alpha = 0.05;                  ///< of the test for worse answers
};

/// What a plan lost against the identity plan on the same items.
struct PlanLoss {
    double perplexity = 0.0;  ///< relative rise, of the text in which it is greatest
    double perplexity_error = 0.0;
    double kl = 0.0;  ///< of the text in which it is greatest
    double kl_error = 0.0;
    /// Measures of probes ("exact:KIND", "answer_nll:KIND") that got significantly worse: paired
    /// difference to the identity plan, two-sided p <= alpha.
    std::vector<std::string> worse = {};
    bool operator==(const PlanLoss&) const = default;
};
/// Of the paired differences, two-sided p <= alpha; nothing that is equal is worse.
bool significantly_worse(const Measure& measure, const ItemScores& plan, const ItemScores& identity,
                         double alpha);
PlanLoss plan_loss(std::span<const Measure> measures, const PlanItems& plan,
                   const PlanItems& identity, double alpha);

struct DropCandidate {
    DropGroup group;
    PlanLoss loss;
};

struct CalibrationRound {
    std::vector<DropCandidate> candidates;
    std::optional<size_t> chosen = {};  ///< none: the limit was met, this round changed nothing
};

enum class CalibrationEnd {
    reached,       ///< the cache is as small as was asked for
    limit,         ///< every further drop loses too much of the text
    probes,        ///< those that would lose little of the text make answers worse
    nothing_left,  ///< no attention that may be dropped (or would free cache) is left
    interrupted,
};

struct Calibration {
    std::vector<CalibrationRound> rounds;
    std::vector<int32_t> dropped;  ///< in the order of dropping
    CalibrationEnd end = CalibrationEnd::interrupted;
};

/// Scores plans on the selection part, the identity plan first; nothing when it was stopped.
using ScorePlans =
    std::function<std::optional<std::vector<PlanItems>>(const std::vector<LayerPlan>& plans)>;

/// Drops attention greedily: each round scores all candidates together and takes the one that loses
/// least within the limits; KL counts where it alone is limited, else perplexity. Of equal ones the
/// first. With keep_kv only drops that free cache are tried. Throws Error when no limit is given.
Calibration calibrate(const ModelShape& shape, const CacheSettings& cache,
                      std::span<const Measure> measures, const DropLimits& limits,
                      const ScorePlans& score);

/// What of the limits does not hold where it had to: a loss over them, or worse answers, on the
/// validation part (`selection` is there to compare), and a cache (`kv`, of the identity's) that is
/// larger than was asked for. Sentences with both numbers.
std::vector<std::string> broken_limits(const DropLimits& limits, double kv,
                                       const std::optional<PlanLoss>& selection,
                                       const std::optional<PlanLoss>& validation);

/// The curve of a profile, from the first drop on: of every round that dropped something the loss
/// that was calibrated by, and the cache bytes.
std::vector<CurvePoint> calibration_curve(const Calibration& calibration, const ModelShape& shape,
                                          const CacheSettings& cache, const DropLimits& limits);

}  // namespace pleat
