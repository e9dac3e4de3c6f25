#include "lab/scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "lab/random.h"
#include "plan/cost.h"
#include "plan/cost_ratio.h"
#include "plan/spec.h"

namespace pleat {
namespace {

/// However many plans stop early, so many go on.
constexpr size_t least_kept = 10;
/// Coarse blocks whose surroundings are looked at.
constexpr size_t n_refined = 8;
/// A stage is written down in so many pieces: what a kill loses is the piece under way.
constexpr size_t pieces_per_rung = 4;

LayerPlan plan_of(const ScanBlock& block, const ModelShape& shape) {
    if (block.begin == block.end) return LayerPlan::resolve({}, shape);
    return LayerPlan::resolve(parse_spec(fmt::format("{},{}", block.begin, block.end)), shape);
}

void append(std::vector<ItemScores>& to, const std::vector<ItemScores>& from) {
    to.resize(from.size());
    for (size_t m = 0; m < from.size(); ++m) {
        to[m].sum.insert(to[m].sum.end(), from[m].sum.begin(), from[m].sum.end());
        to[m].weight.insert(to[m].weight.end(), from[m].weight.begin(), from[m].weight.end());
    }
}

/// The items of the identity plan that the other plan has, too: those of its first sequences.
ItemScores same_items(const ItemScores& identity, const ItemScores& plan) {
    ItemScores result = identity;
    result.sum.resize(plan.size());
    result.weight.resize(plan.size());
    return result;
}

/// Nothing where no item of the measure was seen.
std::optional<Score> score_of(const std::vector<ItemScores>& scores, size_t measure) {
    if (scores.empty() || scores[measure].size() == 0) return std::nullopt;
    return mean_of(scores[measure]);
}

/// A seed gives an order that does not follow that of the file.
std::vector<size_t> mixed(std::vector<size_t> sequences, const Workload& workload, uint64_t seed) {
    std::map<size_t, uint64_t> place;
    for (const size_t s : sequences) {
        uint64_t hash = seed;
        for (const char c : workload.sequences()[s].id) {
            hash = SplitMix64::mix(hash ^ static_cast<unsigned char>(c));
        }
        place[s] = hash;
    }
    std::ranges::sort(sequences, [&](size_t a, size_t b) {
        return std::pair(place[a], a) < std::pair(place[b], b);
    });
    return sequences;
}

size_t measure_to_rank_by(const Workload& workload, const std::string& name) {
    const std::vector<Measure> measures = workload.measures();
    std::string names;
    for (size_t m = 0; m < measures.size(); ++m) {
        const bool wanted =
            name.empty() ? measures[m].name.starts_with("exact:") : measures[m].name == name;
        if (wanted) return m;
        names += (names.empty() ? "" : ", ") + measures[m].name;
    }
    if (!name.empty()) fail("there is no measure {}; this workload gives {}", name, names);
    return 0;  // a text's negative log-likelihood
}

}  // namespace

/// The plans under way, by what is known of them.
struct Scan::Candidates {
    ScannedPlan& identity;
    std::vector<ScannedPlan> plans;
};

Scan::Scan(std::shared_ptr<Model> model, const Workload& workload, SweepSettings settings,
           ScanOptions options)
    : model_(std::move(model)),
      workload_(workload),
      scorer_(model_, settings),
      options_(std::move(options)) {
    split_ = split_items(workload_.ids(), options_.validation, options_.seed);
    // Two sequences are enough, wherever the hash puts them.
    if (options_.validation > 0.0 && workload_.sequences().size() > 1) {
        const auto give_one = [](std::vector<size_t>& from, std::vector<size_t>& to) {
            if (!to.empty()) return;
            to.push_back(from.back());
            from.pop_back();
        };
        give_one(split_.selection, split_.validation);
        give_one(split_.validation, split_.selection);
    }
    if (split_.selection.empty() || (options_.validation > 0.0 && split_.validation.empty())) {
        fail(
            "{} sequences are too few to choose on some and to check on others; use a longer text, "
            "a smaller -c, more probes, or --validation 0",
            workload_.sequences().size());
    }
    order_ = mixed(split_.selection, workload_, options_.seed);
    rank_measure_ = measure_to_rank_by(workload_, options_.rank_by);
}

std::vector<std::pair<std::string, std::string>> Scan::settings() const {
    return {{"max_block", fmt::to_string(options_.max_block)},
            {"stride", fmt::to_string(options_.stride)},
            {"boundary", options_.boundary ? "yes" : "no"},
            {"budget", fmt::format("{}", options_.budget)},
            {"validation", fmt::format("{}", options_.validation)},
            {"seed", fmt::to_string(options_.seed)},
            {"rank_by", workload_.measures()[rank_measure_].name}};
}

/// Sequences [begin, end) of the selection part's order, or of the validation part.
struct Scan::Part {
    bool validation = false;
    size_t begin = 0;
    size_t end = 0;
};

/// Scores the plans on these sequences in pieces; what the journal knows is taken from there.
bool Scan::score(std::vector<ScannedPlan*> plans, ScannedPlan& identity, const Part& whole,
                 Journal* journal, const std::function<bool(double)>& progress) {
    const auto sequences = std::span(whole.validation ? split_.validation : order_)
                               .subspan(whole.begin, whole.end - whole.begin);
    if (sequences.empty() || plans.empty()) return true;
    const std::vector<Measure> measures = workload_.measures();
    const size_t piece = (sequences.size() + pieces_per_rung - 1) / pieces_per_rung;
    for (size_t at = 0; at < sequences.size(); at += piece) {
        const auto part = sequences.subspan(at, std::min(piece, sequences.size() - at));
        const std::string rung =
            fmt::format("{} {}..{}", whole.validation ? "validation" : "selection",
                        whole.begin + at, whole.begin + at + part.size() - 1);
        std::vector<ScannedPlan*> wanted{&identity};
        wanted.insert(wanted.end(), plans.begin(), plans.end());
        std::vector<ScannedPlan*> missing;
        std::map<ScannedPlan*, std::vector<ItemScores>> known;
        for (ScannedPlan* const plan : wanted) {
            const JournalRecord* const record =
                journal == nullptr ? nullptr : journal->find({plan->canonical, rung});
            if (record == nullptr) {
                missing.push_back(plan);
                continue;
            }
            for (const auto& [name, items] : record->scores) known[plan].push_back(items);
        }
        if (!missing.empty()) {
            // The reference has to run in any case.
            std::vector<LayerPlan> run{plan_of(identity.block, model_->shape())};
            for (const ScannedPlan* const plan : missing) {
                if (plan != &identity) run.push_back(plan_of(plan->block, model_->shape()));
            }
            const PlanScores scores = scorer_.score(run, workload_, part, [&](double fraction) {
                return !progress || progress((static_cast<double>(at) +
                                              fraction * static_cast<double>(part.size())) /
                                             static_cast<double>(sequences.size()));
            });
            if (!scores.complete) return false;
            size_t next = 1;
            for (ScannedPlan* const plan : missing) {
                known[plan] = scores.by_plan[plan == &identity ? 0 : next++];
                if (journal == nullptr) continue;
                JournalRecord record{.key = {plan->canonical, rung}, .scores = {}};
                for (size_t m = 0; m < measures.size(); ++m) {
                    record.scores.emplace_back(measures[m].name, known[plan][m]);
                }
                journal->append(record);
            }
        }
        for (ScannedPlan* const plan : wanted) {
            append(whole.validation ? plan->validation : plan->selection, known[plan]);
        }
    }
    return true;
}

bool Scan::run_rungs(Candidates& candidates, const std::vector<Rung>& rungs,
                     const std::string& stage, Journal* journal, const Progress& progress) {
    const Measure measure = workload_.measures()[rank_measure_];
    std::vector<ScannedPlan*> alive;
    for (ScannedPlan& plan : candidates.plans) alive.push_back(&plan);
    size_t seen = 0;
    for (size_t r = 0; r < rungs.size(); ++r) {
        const Part part{.validation = false, .begin = seen, .end = rungs[r].n_sequences};
        const std::string name = rungs.size() == 1
                                     ? stage
                                     : fmt::format("{}, rung {} of {}", stage, r + 1, rungs.size());
        ScannedPlan of_rung{.block = {}, .canonical = candidates.identity.canonical};
        const bool done = score(alive, of_rung, part, journal, [&](double fraction) {
            return !progress || progress(name, fraction);
        });
        if (!done) return false;
        // A second stage takes the same sequences, which the identity then has already.
        if (rungs[r].n_sequences > candidates.identity.n_sequences) {
            append(candidates.identity.selection, of_rung.selection);
            candidates.identity.n_sequences = rungs[r].n_sequences;
        }
        seen = rungs[r].n_sequences;
        for (ScannedPlan* const plan : alive) {
            plan->rung = r;
            plan->n_sequences = seen;
        }
        if (r + 1 == rungs.size()) break;
        // Too early to tell.
        if (alive.front()->selection[rank_measure_].size() == 0) continue;
        std::ranges::stable_sort(alive, [&](const ScannedPlan* a, const ScannedPlan* b) {
            const double x = mean_of(a->selection[rank_measure_]).value;
            const double y = mean_of(b->selection[rank_measure_]).value;
            return measure.higher_is_better ? x > y : x < y;
        });
        const auto kept =
            static_cast<size_t>(std::ceil(static_cast<double>(alive.size()) * rungs[r].keep));
        alive.resize(std::min(alive.size(), std::max(kept, least_kept)));
    }
    return true;
}

ScanResult Scan::run(Journal* journal, const Progress& progress) {
    const ModelShape& shape = model_->shape();
    ScanResult result;
    result.range = scan_range(shape.n_layer, options_.boundary);
    result.measures = workload_.measures();
    result.rank_measure = rank_measure_;
    result.split = split_;
    result.rungs = halving_rungs(order_.size(), options_.budget);
    result.identity.canonical = plan_of({}, shape).canonical();
    const Measure& measure = result.measures[rank_measure_];

    const auto better = [&](const ScannedPlan& a, const ScannedPlan& b) {
        // Who saw more items comes first: the others were stopped for being worse.
        if (a.rung != b.rung) return a.rung > b.rung;
        const double x = mean_of(a.selection[rank_measure_]).value;
        const double y = mean_of(b.selection[rank_measure_]).value;
        if (x != y) return measure.higher_is_better ? x > y : x < y;
        return a.block < b.block;
    };
    std::set<ScanBlock> tried;
    const auto stage = [&](const std::vector<ScanBlock>& blocks, const std::string& name) {
        Candidates candidates{.identity = result.identity, .plans = {}};
        for (const ScanBlock& block : blocks) {
            if (!tried.insert(block).second) continue;
            candidates.plans.push_back(
                {.block = block, .canonical = plan_of(block, shape).canonical()});
        }
        if (!run_rungs(candidates, result.rungs, name, journal, progress)) return false;
        result.plans.insert(result.plans.end(), candidates.plans.begin(), candidates.plans.end());
        std::ranges::sort(result.plans, better);
        return true;
    };

    const bool coarse = options_.stride > 1;
    const std::vector<ScanBlock> blocks =
        scan_blocks(result.range, options_.max_block, options_.stride);
    if (blocks.empty()) {
        fail("there is no block to scan: layers {} to {}, blocks of at most {}, stride {}",
             result.range.begin, result.range.end - 1, options_.max_block, options_.stride);
    }
    if (!stage(blocks, coarse ? "coarse scan" : "scan")) {
        result.complete = false;
        return result;
    }
    if (coarse) {
        std::vector<ScanBlock> around;
        for (size_t i = 0; i < std::min(n_refined, result.plans.size()); ++i) {
            const auto some = blocks_around(result.plans[i].block, result.range, options_.max_block,
                                            options_.stride);
            around.insert(around.end(), some.begin(), some.end());
        }
        if (!stage(around, "refinement")) {
            result.complete = false;
            return result;
        }
    }

    std::vector<ScannedPlan*> winners;
    for (size_t i = 0; i < std::min(options_.n_winners, result.plans.size()); ++i) {
        winners.push_back(&result.plans[i]);
    }
    const bool done = score(
        winners, result.identity, {.validation = true, .begin = 0, .end = split_.validation.size()},
        journal, [&](double fraction) { return !progress || progress("validation", fraction); });
    result.complete = done;
    return result;
}

ReportData Scan::report(const ScanResult& result, const CacheSettings& cache) const {
    const ModelShape& shape = model_->shape();
    ReportData data;
    data.n_layer = shape.n_layer;
    data.n_plans_tried = result.plans.size();
    data.settings = settings();
    const size_t n_measures = result.measures.size();
    for (size_t m = 0; m < n_measures; ++m) {
        ReportMeasure measure{.measure = result.measures[m]};
        const bool nats = measure.measure.name.starts_with("nll") ||
                          measure.measure.name.starts_with("kl") ||
                          measure.measure.name.starts_with("answer_nll");
        measure.unit = nats ? "nats per token" : "0 to 1";
        measure.identity.selection = score_of(result.identity.selection, m);
        measure.n_selection = result.identity.selection[m].size();
        measure.identity.validation = score_of(result.identity.validation, m);
        if (measure.identity.validation) {
            measure.n_validation = result.identity.validation[m].size();
        }
        data.measures.push_back(std::move(measure));
    }
    const PlanCost base = plan_cost(plan_of({}, shape), shape, cache);
    const BootstrapOptions bootstrap{.seed = options_.seed};
    for (const ScannedPlan& plan : result.plans) {
        const PlanCost cost = plan_cost(plan_of(plan.block, shape), shape, cache);
        ReportRow row{
            .flag = fmt::format("--repeat-layers \"{},{}\"", plan.block.begin, plan.block.end),
            .canonical = plan.canonical,
            .begin = plan.block.begin,
            .end = plan.block.end,
            .compute_ratio = cost_ratio(cost.flops, base.flops),
            .read_ratio = cost_ratio(cost.weight_read_bytes, base.weight_read_bytes),
            .kv_ratio = cost_ratio(cost.cache_bytes(), base.cache_bytes())};
        for (size_t m = 0; m < n_measures; ++m) {
            ReportScore score;
            const auto difference = [&](const ItemScores& items, const ItemScores& identity) {
                const PairedDifference d =
                    paired_difference(items, same_items(identity, items), bootstrap);
                return Difference{.value = d.mean, .low = d.low, .high = d.high};
            };
            score.selection = score_of(plan.selection, m);
            if (score.selection) {
                score.difference = difference(plan.selection[m], result.identity.selection[m]);
                // Of a plan that stopped early only the difference can be compared with others:
                // the items it saw may be easier than all.
                if (plan.n_sequences < order_.size() && data.measures[m].identity.selection) {
                    score.selection->value =
                        data.measures[m].identity.selection->value + score.difference->value;
                }
            }
            score.validation = score_of(plan.validation, m);
            if (score.validation) {
                score.validation_difference =
                    difference(plan.validation[m], result.identity.validation[m]);
            }
            row.scores.push_back(std::move(score));
        }
        data.rows.push_back(std::move(row));
    }
    // The validation items had no say in the choice, so the family is what was re-scored on them.
    for (size_t m = 0; m < n_measures; ++m) {
        // These compare with the identity plan, which nothing can beat in being itself.
        const std::string& name = result.measures[m].name;
        if (name.starts_with("kl") || name.starts_with("top1")) continue;
        std::vector<double> p;
        std::vector<size_t> rows;
        for (size_t i = 0; i < result.plans.size(); ++i) {
            if (!score_of(result.plans[i].validation, m)) continue;
            rows.push_back(i);
            p.push_back(paired_difference(result.plans[i].validation[m],
                                          result.identity.validation[m], bootstrap)
                            .p);
        }
        const std::vector<bool> survivors = holm_survivors(p, options_.alpha);
        for (size_t i = 0; i < rows.size(); ++i) {
            ReportScore& score = data.rows[rows[i]].scores[m];
            const double gain = score.validation_difference->value;
            const bool better = result.measures[m].higher_is_better ? gain > 0.0 : gain < 0.0;
            score.survives = survivors[i] && better;
        }
    }
    if (result.range.whole) {
        data.notes.push_back(
            fmt::format("{} layers are too few to leave boundary layers out, so all were scanned",
                        shape.n_layer));
    }
    const size_t n_winners = std::min(options_.n_winners, result.plans.size());
    if (split_.validation.empty()) {
        data.notes.push_back(fmt::format(
            "{} plans were tried, and none was checked on items that had no say in the choice: the "
            "best of so many is better by luck alone",
            result.plans.size()));
    } else {
        data.notes.push_back(fmt::format(
            "{} plans were tried; the best {} were scored again on items that had no say in the "
            "choice. A plan survives a measure when its difference there is better than the "
            "identity plan's and stays significant after Holm's correction over these {} plans "
            "(alpha {})",
            result.plans.size(), n_winners, n_winners, options_.alpha));
    }
    if (result.rungs.size() > 1) {
        data.notes.push_back(
            fmt::format("successive halving in {} rungs: plans that stopped early saw fewer items, "
                        "and are shown "
                        "at the identity plan's value plus their difference on those",
                        result.rungs.size()));
    }
    return data;
}

}  // namespace pleat
