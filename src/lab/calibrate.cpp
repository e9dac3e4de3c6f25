#include "lab/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "lab/statistics.h"
#include "plan/path.h"
#include "plan/spec.h"

namespace pleat {
namespace {

bool contains(std::span<const int32_t> layers, int32_t layer) {
    return std::ranges::find(layers, layer) != layers.end();
}

std::vector<int32_t> joined(std::span<const int32_t> layers, const DropGroup& group) {
    std::vector<int32_t> all(layers.begin(), layers.end());
    all.insert(all.end(), group.begin(), group.end());
    return all;
}

bool any_attention_left(const ModelShape& shape, std::span<const int32_t> dropped) {
    for (int32_t layer = 0; layer < shape.n_layer; ++layer) {
        const Role role = shape.layers[static_cast<size_t>(layer)].role;
        if (role != Role::recurrent && !contains(dropped, layer)) return true;
    }
    return false;
}

uint64_t kv_bytes_per_token(const ModelShape& shape, const CacheSettings& cache,
                            std::span<const int32_t> dropped) {
    return plan_cost(drop_plan(shape, dropped), shape, cache).kv_bytes_per_token();
}

bool ranks_by_kl(const DropLimits& limits) { return limits.max_kl && !limits.max_loss; }

double ranked(const PlanLoss& loss, const DropLimits& limits) {
    return ranks_by_kl(limits) ? loss.kl : loss.perplexity;
}

bool within(const PlanLoss& loss, const DropLimits& limits) {
    return (!limits.max_loss || loss.perplexity <= *limits.max_loss) &&
           (!limits.max_kl || loss.kl <= *limits.max_kl);
}

/// The best candidate within all limits; where there is none, why.
CalibrationEnd choose(CalibrationRound& round, const DropLimits& limits) {
    bool stopped_by_probes = false;
    for (size_t i = 0; i < round.candidates.size(); ++i) {
        const PlanLoss& loss = round.candidates[i].loss;
        if (!within(loss, limits)) continue;
        if (!loss.worse.empty()) {
            stopped_by_probes = true;
            continue;
        }
        if (!round.chosen ||
            ranked(loss, limits) < ranked(round.candidates[*round.chosen].loss, limits)) {
            round.chosen = i;
        }
    }
    return stopped_by_probes ? CalibrationEnd::probes : CalibrationEnd::limit;
}

}  // namespace

std::vector<DropGroup> drop_candidates(const ModelShape& shape, std::span<const int32_t> dropped) {
    std::vector<DropGroup> groups;
    for (int32_t layer = 0; layer < shape.n_layer; ++layer) {
        if (!droppable(shape.layers[static_cast<size_t>(layer)].role)) continue;
        if (contains(dropped, layer)) continue;
        DropGroup group{layer};
        for (int32_t reader = 0; reader < shape.n_layer; ++reader) {
            const LayerShape& it = shape.layers[static_cast<size_t>(reader)];
            const bool reads = it.role == Role::shared_kv_attention && it.kv_owner == layer;
            if (reads && !contains(dropped, reader)) group.push_back(reader);
        }
        if (shape.hybrid() && !any_attention_left(shape, joined(dropped, group))) continue;
        groups.push_back(std::move(group));
    }
    return groups;
}

std::string drop_spec(std::span<const int32_t> dropped) {
    if (dropped.empty()) return {};
    std::vector<int32_t> layers(dropped.begin(), dropped.end());
    std::ranges::sort(layers);
    return "drop:" + print_layers(layers);
}

LayerPlan drop_plan(const ModelShape& shape, std::span<const int32_t> dropped) {
    return LayerPlan::resolve(parse_spec(drop_spec(dropped)), shape);
}

bool significantly_worse(const Measure& measure, const ItemScores& plan, const ItemScores& identity,
                         double alpha) {
    // The interval is not asked for.
    const PairedDifference d = paired_difference(plan, identity, {.n_resamples = 1});
    return (d.mean < 0) == measure.higher_is_better && d.mean != 0 && d.p <= alpha;
}

PlanLoss plan_loss(std::span<const Measure> measures, const PlanItems& plan,
                   const PlanItems& identity, double alpha) {
    PlanLoss loss;
    bool first_nll = true;
    bool first_kl = true;
    for (size_t m = 0; m < measures.size(); ++m) {
        const std::string& name = measures[m].name;
        if (name.starts_with("top1")) continue;
        // The interval is not asked for.
        const PairedDifference d = paired_difference(plan[m], identity[m], {.n_resamples = 1});
        if (name.starts_with("nll")) {
            const double rise = std::expm1(d.mean);
            if (first_nll || rise > loss.perplexity) {
                loss.perplexity = rise;
                loss.perplexity_error = std::exp(d.mean) * d.error;
            }
            first_nll = false;
        } else if (name.starts_with("kl")) {
            if (first_kl || d.mean > loss.kl) {
                loss.kl = d.mean;
                loss.kl_error = d.error;
            }
            first_kl = false;
        } else if (significantly_worse(measures[m], plan[m], identity[m], alpha)) {
            loss.worse.push_back(name);
        }
    }
    return loss;
}

Calibration calibrate(const ModelShape& shape, const CacheSettings& cache,
                      std::span<const Measure> measures, const DropLimits& limits,
                      const ScorePlans& score) {
    if (!limits.max_loss && !limits.max_kl && !limits.keep_kv) fail("no limit to drop up to");
    Calibration calibration;
    std::vector<int32_t>& dropped = calibration.dropped;
    const auto kv_identity = static_cast<double>(kv_bytes_per_token(shape, cache, {}));
    for (;;) {
        const uint64_t kv = kv_bytes_per_token(shape, cache, dropped);
        if (limits.keep_kv && static_cast<double>(kv) <= *limits.keep_kv * kv_identity) {
            calibration.end = CalibrationEnd::reached;
            return calibration;
        }
        CalibrationRound round;
        std::vector<LayerPlan> plans{drop_plan(shape, {})};
        for (DropGroup& group : drop_candidates(shape, dropped)) {
            const std::vector<int32_t> all = joined(dropped, group);
            if (limits.keep_kv && kv_bytes_per_token(shape, cache, all) == kv) continue;
            plans.push_back(drop_plan(shape, all));
            round.candidates.push_back({.group = std::move(group), .loss = {}});
        }
        if (round.candidates.empty()) {
            calibration.end = CalibrationEnd::nothing_left;
            return calibration;
        }
        const auto scores = score(plans);
        if (!scores) {
            calibration.end = CalibrationEnd::interrupted;
            return calibration;
        }
        for (size_t i = 0; i < round.candidates.size(); ++i) {
            round.candidates[i].loss =
                plan_loss(measures, scores->at(i + 1), scores->front(), limits.alpha);
        }
        const CalibrationEnd why_none = choose(round, limits);
        calibration.rounds.push_back(std::move(round));
        const CalibrationRound& last = calibration.rounds.back();
        if (!last.chosen) {
            calibration.end = why_none;
            return calibration;
        }
        dropped = joined(dropped, last.candidates[*last.chosen].group);
    }
}

std::vector<std::string> broken_limits(const DropLimits& limits, double kv,
                                       const std::optional<PlanLoss>& selection,
                                       const std::optional<PlanLoss>& validation) {
    std::vector<std::string> broken;
    if (limits.keep_kv && kv > *limits.keep_kv) {
        broken.push_back(fmt::format("--keep-kv: asked {:.4g} % of the K/V bytes, reached {:.4g} %",
                                     *limits.keep_kv * 100, kv * 100));
    }
    if (!selection || !validation) return broken;
    if (limits.max_loss && validation->perplexity > *limits.max_loss) {
        broken.push_back(fmt::format(
            "--max-loss {:.4g} % does not hold on validation: perplexity {:+.3f} % on "
            "selection, {:+.3f} % on validation",
            *limits.max_loss * 100, selection->perplexity * 100, validation->perplexity * 100));
    }
    if (limits.max_kl && validation->kl > *limits.max_kl) {
        broken.push_back(fmt::format(
            "--kl {:.4g} does not hold on validation: KL {:.5f} on selection, {:.5f} on validation",
            *limits.max_kl, selection->kl, validation->kl));
    }
    for (const std::string& name : validation->worse) {
        broken.push_back(
            fmt::format("{} is significantly worse than the identity plan's on validation", name));
    }
    return broken;
}

std::vector<CurvePoint> calibration_curve(const Calibration& calibration, const ModelShape& shape,
                                          const CacheSettings& cache, const DropLimits& limits) {
    std::vector<CurvePoint> curve;
    std::vector<int32_t> dropped;
    for (const CalibrationRound& round : calibration.rounds) {
        if (!round.chosen) continue;
        const DropCandidate& it = round.candidates[*round.chosen];
        dropped = joined(dropped, it.group);
        const PlanCost cost = plan_cost(drop_plan(shape, dropped), shape, cache);
        curve.push_back({.plan = drop_spec(dropped),
                         .dropped = dropped,
                         .loss = ranked(it.loss, limits),
                         .error = ranks_by_kl(limits) ? it.loss.kl_error : it.loss.perplexity_error,
                         .kv_bytes = cost.kv_bytes_full + cost.kv_bytes_window});
    }
    return curve;
}

}  // namespace pleat
