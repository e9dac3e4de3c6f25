#include <fmt/format.h>

#include <algorithm>

#include "lab/scan.h"
#include "plan/cost_ratio.h"

namespace pleat {
namespace {

/// Nothing where the plan, or an item of the measure, was not seen.
std::optional<Score> score_of(const PlanItems* items, size_t measure) {
    if (items == nullptr || items->at(measure).size() == 0) return std::nullopt;
    return mean_of(items->at(measure));
}

Difference shown(const PairedDifference& d) {
    return {.value = d.mean, .low = d.low, .high = d.high};
}

/// What a plan that saw fewer items than `all` says of itself; nothing of others.
std::string early_stop(const PlanItems& seen, const PlanItems& all) {
    for (size_t m = 0; m < all.size(); ++m) {
        if (seen[m].size() == all[m].size()) continue;
        return fmt::format("stopped early: {} of {} items", seen[m].size(), all[m].size());
    }
    return "";
}

std::string unit_of(const std::string& measure) {
    const bool nats = measure.starts_with("nll") || measure.starts_with("kl") ||
                      measure.starts_with("answer_nll");
    return nats ? "nats per token" : "0 to 1";
}

}  // namespace

ReportMeasure Scan::report_measure(size_t measure) const {
    ReportMeasure it{.measure = trials_.measures()[measure],
                     .unit = unit_of(trials_.measures()[measure].name)};
    const PlanItems* const selection = trials_.find(identity_, TrialPart::selection);
    const PlanItems* const validation = trials_.find(identity_, TrialPart::validation);
    it.identity.selection = score_of(selection, measure);
    it.n_selection = selection->at(measure).size();
    it.identity.validation = score_of(validation, measure);
    if (validation != nullptr) it.n_validation = validation->at(measure).size();
    return it;
}

ReportScore Scan::report_score(const LayerPlan& plan, size_t measure) const {
    const BootstrapOptions bootstrap{.seed = options_.seed};
    const PlanItems* const own = trials_.find(plan, TrialPart::selection);
    ReportScore score{.selection = score_of(own, measure),
                      .validation = score_of(trials_.find(plan, TrialPart::validation), measure)};
    if (const auto d = trials_.difference(plan, TrialPart::selection, measure, bootstrap)) {
        score.difference = shown(*d);
        // The items that a plan saw may be easier than all.
        score.selection->value = trials_.expected(plan, measure).value();
    }
    if (const auto d = trials_.difference(plan, TrialPart::validation, measure, bootstrap)) {
        score.validation_difference = shown(*d);
    }
    return score;
}

/// The validation items had no say in the choice, so the family is what was scored on them.
void Scan::mark_survivors(const ScanResult& result, ReportData& data) const {
    for (size_t m = 0; m < data.measures.size(); ++m) {
        // These compare with the identity plan, which nothing can beat in being itself.
        const Measure& measure = data.measures[m].measure;
        if (measure.name.starts_with("kl") || measure.name.starts_with("top1")) continue;
        std::vector<double> p;
        std::vector<size_t> rows;
        for (size_t i = 0; i < result.plans.size(); ++i) {
            const auto d = trials_.difference(result.plans[i].plan, TrialPart::validation, m,
                                              {.n_resamples = 1});
            if (!d) continue;
            rows.push_back(i);
            p.push_back(d->p);
        }
        const std::vector<bool> survivors = holm_survivors(p, options_.alpha);
        for (size_t i = 0; i < rows.size(); ++i) {
            ReportScore& score = data.rows[rows[i]].scores[m];
            const double gain = score.validation_difference->value;
            score.survives = survivors[i] && (measure.higher_is_better ? gain > 0.0 : gain < 0.0);
        }
    }
}

std::vector<std::string> Scan::notes(const ScanResult& result) const {
    std::vector<std::string> notes;
    if (result.range.whole) {
        notes.push_back(
            fmt::format("{} layers are too few to leave boundary layers out, so all were scanned",
                        shape_.n_layer));
    }
    const size_t n_winners = std::min(options_.n_winners, result.plans.size());
    if (!trials_.has_validation()) {
        notes.push_back(fmt::format(
            "{} plans were tried, and none was checked on items that had no say in the choice: the "
            "best of so many is better by luck alone",
            result.plans.size()));
    } else {
        notes.push_back(fmt::format(
            "{} plans were tried; the best {} were scored again on items that had no say in the "
            "choice. A plan survives a measure when its difference there is better than the "
            "identity plan's and stays significant after Holm's correction over these {} plans "
            "(alpha {})",
            result.plans.size(), n_winners, n_winners, options_.alpha));
    }
    if (result.rungs.size() > 1) {
        notes.push_back(fmt::format(
            "successive halving in {} rungs: the last one saw {} of {} sequences, plans that "
            "stopped early fewer; values are what is expected on all, and plans that stopped "
            "early are on no front, and never the best",
            result.rungs.size(), result.rungs.back().n_sequences,
            trials_.n_sequences(TrialPart::selection)));
    }
    return notes;
}

ReportData Scan::report(const ScanResult& result, const CacheSettings& cache) const {
    ReportData data;
    data.n_layer = shape_.n_layer;
    data.n_plans_tried = result.plans.size();
    data.settings = settings();
    for (size_t m = 0; m < trials_.measures().size(); ++m) {
        data.measures.push_back(report_measure(m));
    }
    const PlanItems& all = *trials_.find(identity_, TrialPart::selection);
    const PlanCost base = plan_cost(identity_, shape_, cache);
    for (const ScannedPlan& plan : result.plans) {
        const PlanCost cost = plan_cost(plan.plan, shape_, cache);
        ReportRow row{
            .flag = fmt::format("--repeat-layers \"{},{}\"", plan.block.begin, plan.block.end),
            .canonical = plan.plan.canonical(),
            .begin = plan.block.begin,
            .end = plan.block.end,
            .compute_ratio = cost_ratio(cost.flops, base.flops),
            .read_ratio = cost_ratio(cost.weight_read_bytes, base.weight_read_bytes),
            .kv_ratio = cost_ratio(cost.cache_bytes(), base.cache_bytes())};
        for (size_t m = 0; m < data.measures.size(); ++m) {
            row.scores.push_back(report_score(plan.plan, m));
        }
        if (plan.rung + 1 < result.rungs.size()) {
            row.set_aside = early_stop(*trials_.find(plan.plan, TrialPart::selection), all);
        }
        data.rows.push_back(std::move(row));
    }
    mark_survivors(result, data);
    data.notes = notes(result);
    return data;
}

}  // namespace pleat
