#include "lab/scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/error.h"
#include "plan/spec.h"

namespace pleat {
namespace {

/// However many plans stop early, so many go on.
constexpr size_t least_kept = 10;
/// Coarse blocks whose surroundings are looked at.
constexpr size_t n_refined = 8;

LayerPlan plan_of(const ScanBlock& block, const ModelShape& shape) {
    return LayerPlan::resolve(parse_spec(fmt::format("{},{}", block.begin, block.end)), shape);
}

size_t measure_to_rank_by(const std::vector<Measure>& measures, const std::string& name) {
    std::string names;
    for (size_t m = 0; m < measures.size(); ++m) {
        const std::string& it = measures[m].name;
        const bool wanted = name.empty() ? it.starts_with("exact:") || it.starts_with("probe:")
                                         : is_called(measures[m], name);
        if (wanted) return m;
        names += (names.empty() ? "" : ", ") + measures[m].name;
    }
    if (!name.empty()) fail("there is no measure {}; this workload gives {}", name, names);
    return 0;  // a text's negative log-likelihood
}

}  // namespace

Scan::Scan(const ModelShape& shape, Trials& trials, std::vector<Rung> rungs, ScanOptions options)
    : shape_(shape),
      trials_(trials),
      rungs_(std::move(rungs)),
      options_(std::move(options)),
      identity_(LayerPlan::resolve({}, shape)),
      range_(scan_range(shape.n_layer, options_.boundary)),
      rank_measure_(measure_to_rank_by(trials.measures(), options_.rank_by)) {
    if (scan_blocks(range_, options_.max_block, options_.stride).empty()) {
        fail("there is no block to scan: layers {} to {}, blocks of at most {}, stride {}",
             range_.begin, range_.end - 1, options_.max_block, options_.stride);
    }
}

std::vector<std::pair<std::string, std::string>> Scan::settings() const {
    return {{"max_block", fmt::to_string(options_.max_block)},
            {"stride", fmt::to_string(options_.stride)},
            {"boundary", options_.boundary ? "yes" : "no"},
            {"budget", fmt::format("{}", options_.budget)},
            {"rank_by", trials_.measures()[rank_measure_].name}};
}

/// NaN where no item of the measure was seen yet.
double Scan::rank_value(const LayerPlan& plan) const {
    return trials_.expected(plan, rank_measure_).value_or(std::nan(""));
}

bool Scan::ranks_before(double a, double b) const {
    return trials_.measures()[rank_measure_].higher_is_better ? a > b : a < b;
}

std::optional<std::vector<ScannedPlan>> Scan::run_rungs(const std::vector<ScanBlock>& blocks,
                                                        const std::string& stage,
                                                        const Progress& progress) {
    std::vector<ScannedPlan> plans;
    for (const ScanBlock& block : blocks) {
        plans.push_back({.block = block, .plan = plan_of(block, shape_)});
    }
    std::vector<ScannedPlan*> alive;
    for (ScannedPlan& plan : plans) alive.push_back(&plan);
    for (size_t r = 0; r < rungs_.size(); ++r) {
        const std::string name =
            rungs_.size() == 1 ? stage
                               : fmt::format("{}, rung {} of {}", stage, r + 1, rungs_.size());
        std::vector<LayerPlan> run{identity_};
        for (const ScannedPlan* const plan : alive) run.push_back(plan->plan);
        const auto scores = trials_.score_first(rungs_[r].n_sequences, run, [&](double fraction) {
            return !progress || progress(name, fraction);
        });
        if (!scores) return std::nullopt;
        for (ScannedPlan* const plan : alive) plan->rung = r;
        if (r + 1 == rungs_.size()) break;
        if (scores->back()[rank_measure_].size() == 0) continue;  // too early to tell
        std::ranges::stable_sort(alive, [&](const ScannedPlan* a, const ScannedPlan* b) {
            return ranks_before(rank_value(a->plan), rank_value(b->plan));
        });
        const auto kept =
            static_cast<size_t>(std::ceil(static_cast<double>(alive.size()) * rungs_[r].keep));
        alive.resize(std::min(alive.size(), std::max(kept, least_kept)));
    }
    return plans;
}

bool Scan::score_winners(const std::vector<ScannedPlan>& plans, const Progress& progress) {
    if (!trials_.has_validation()) return true;
    std::vector<LayerPlan> run{identity_};
    for (size_t i = 0; i < std::min(options_.n_winners, plans.size()); ++i) {
        run.push_back(plans[i].plan);
    }
    return trials_
        .score(run, TrialPart::validation,
               [&](double fraction) { return !progress || progress("validation", fraction); })
        .has_value();
}

ScanResult Scan::run(const Progress& progress) {
    ScanResult result{.range = range_, .rank_measure = rank_measure_, .rungs = rungs_};
    // What other plans see part of is compared with all of it.
    result.complete = trials_.score({identity_}, TrialPart::selection).has_value();
    std::set<ScanBlock> tried;
    const auto stage = [&](const std::vector<ScanBlock>& blocks, const std::string& name) {
        std::vector<ScanBlock> fresh;
        for (const ScanBlock& block : blocks) {
            if (tried.insert(block).second) fresh.push_back(block);
        }
        auto plans = run_rungs(fresh, name, progress);
        if (!plans) return false;
        std::ranges::move(*plans, std::back_inserter(result.plans));
        std::ranges::sort(result.plans, [&](const ScannedPlan& a, const ScannedPlan& b) {
            // Who saw more items comes first: the others were stopped for being worse.
            if (a.rung != b.rung) return a.rung > b.rung;
            const double x = rank_value(a.plan);
            const double y = rank_value(b.plan);
            return x == y ? a.block < b.block : ranks_before(x, y);
        });
        return true;
    };

    const bool coarse = options_.stride > 1;
    result.complete =
        result.complete && stage(scan_blocks(range_, options_.max_block, options_.stride),
                                 coarse ? "coarse scan" : "scan");
    if (coarse && result.complete) {
        std::vector<ScanBlock> around;
        for (size_t i = 0; i < std::min(n_refined, result.plans.size()); ++i) {
            const auto some =
                blocks_around(result.plans[i].block, range_, options_.max_block, options_.stride);
            around.insert(around.end(), some.begin(), some.end());
        }
        result.complete = stage(around, "refinement");
    }
    if (result.complete) result.complete = score_winners(result.plans, progress);
    return result;
}

}  // namespace pleat
