#include "lab/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "base/error.h"
#include "lab/statistics.h"
#include "plan/cost_ratio.h"
#include "plan/path.h"
#include "plan/spec.h"

namespace pleat {
namespace {

/// One change of a plan.
struct Move {
    std::optional<SearchBlock> block = {};
    DropGroup attention = {};
    std::optional<int32_t> ffn = {};
    auto operator<=>(const Move&) const = default;
};

SearchState after(SearchState state, const Move& move) {
    if (move.block) state.blocks.push_back(*move.block);
    state.dropped.insert(state.dropped.end(), move.attention.begin(), move.attention.end());
    if (move.ffn) state.dropped_ffn.push_back(*move.ffn);
    return state;
}

std::string sorted_layers(std::vector<int32_t> layers) {
    std::ranges::sort(layers);
    return print_layers(layers);
}

std::string block_list(const SearchState& state) {
    std::string text;
    for (const SearchBlock& block : state.blocks) {
        text += fmt::format("{}{},{}", text.empty() ? "" : ";", block.begin, block.end);
    }
    return text;
}

/// What a search asks of a model: plans with their costs.
class Planner {
  public:
    Planner(const ModelShape& shape, const CacheSettings& cache)
        : shape_(shape),
          cache_(cache),
          identity_(LayerPlan::resolve({}, shape)),
          base_(plan_cost(identity_, shape, cache)) {}

    const LayerPlan& identity() const { return identity_; }

    /// Nothing when the rules do not allow it: a path can become too long.
    std::optional<SearchedPlan> make(SearchState state, size_t depth) const {
        std::optional<LayerPlan> plan = resolved(state);
        if (!plan) return std::nullopt;
        const PlanCost cost = plan_cost(*plan, shape_, cache_);
        return SearchedPlan{.state = std::move(state),
                            .plan = std::move(*plan),
                            .depth = depth,
                            .compute = cost_ratio(cost.flops, base_.flops),
                            .read = cost_ratio(cost.weight_read_bytes, base_.weight_read_bytes),
                            .kv = cost_ratio(cost.cache_bytes(), base_.cache_bytes())};
    }

  private:
    std::optional<LayerPlan> resolved(const SearchState& state) const {
        try {
            return LayerPlan::resolve(parse_spec(state_spec(state)), shape_);
        } catch (const Error&) {
            return std::nullopt;
        }
    }

    const ModelShape& shape_;
    const CacheSettings& cache_;
    LayerPlan identity_;
    PlanCost base_;
};

/// A plan that could be scored next.
struct Proposal {
    SearchedPlan plan;
    Move move;
    double promise = 0.0;
};

class Beam {
  public:
    Beam(const ModelShape& shape, const CacheSettings& cache, const SearchOptions& options)
        : shape_(shape), options_(options), planner_(shape, cache) {
        seen_.insert(planner_.identity().canonical());
        for (const SearchBlock& block : single_blocks(shape, options.max_block)) {
            pool_.push_back(block);
        }
    }

    SearchResult run(std::span<const Measure> measures, size_t measure, const ScorePlans& score) {
        SearchedPlan root = *planner_.make({}, 0);
        result_.identity_within = within_budget(root, options_);
        std::vector<SearchedPlan> frontier{std::move(root)};
        for (size_t depth = 1; depth <= options_.depth && !frontier.empty(); ++depth) {
            std::vector<Proposal> proposals = propose(frontier, depth);
            if (depth > 1) keep_promising(proposals);
            if (proposals.empty()) break;
            std::vector<LayerPlan> plans{planner_.identity()};
            for (const Proposal& it : proposals) plans.push_back(it.plan.plan);
            const auto scores = score(plans);
            if (!scores) {
                result_.complete = false;
                return std::move(result_);
            }
            for (size_t i = 0; i < proposals.size(); ++i) {
                SearchedPlan& plan = proposals[i].plan;
                judge(plan, measures, measure, scores->at(i + 1), scores->front());
                if (depth == 1) alone_[proposals[i].move] = plan.gain;
            }
            if (depth == 1) keep_best_blocks();
            frontier = next_frontier(proposals, depth);
            for (Proposal& it : proposals) result_.plans.push_back(std::move(it.plan));
        }
        pick();
        return std::move(result_);
    }

  private:
    void judge(SearchedPlan& plan, std::span<const Measure> measures, size_t measure,
               const PlanItems& own, const PlanItems& identity) const {
        const double difference =
            mean_of(own.at(measure)).value - mean_of(identity.at(measure)).value;
        plan.gain = measures[measure].higher_is_better ? difference : -difference;
        for (const size_t m : options_.guards) {
            if (significantly_worse(measures[m], own.at(m), identity.at(m), options_.alpha)) {
                plan.worse.push_back(measures[m].name);
            }
        }
    }

    std::vector<Move> moves_of(const SearchState& state) const {
        std::vector<Move> moves;
        for (const SearchBlock& block : pool_) moves.push_back({.block = block});
        for (DropGroup& group : drop_candidates(shape_, state.dropped)) {
            moves.push_back({.attention = std::move(group)});
        }
        for (int32_t layer = 0; options_.drop_ffn && layer < shape_.n_layer; ++layer) {
            if (std::ranges::find(state.dropped_ffn, layer) == state.dropped_ffn.end()) {
                moves.push_back({.ffn = layer});
            }
        }
        return moves;
    }

    /// At depth 1 budgets do not count: what a move does alone is how it is judged later.
    std::vector<Proposal> propose(const std::vector<SearchedPlan>& frontier, size_t depth) {
        std::vector<Proposal> proposals;
        for (const SearchedPlan& from : frontier) {
            for (const Move& move : moves_of(from.state)) {
                auto next = planner_.make(after(from.state, move), depth);
                if (!next || (depth > 1 && !may_follow(from, *next, options_))) continue;
                if (!seen_.insert(next->plan.canonical()).second) continue;
                proposals.push_back({.plan = std::move(*next),
                                     .move = move,
                                     .promise = from.gain + gain_alone(move)});
            }
        }
        return proposals;
    }

    /// A drop of fewer readers than at depth 1 counts as its first layer's drop there.
    double gain_alone(const Move& move) const {
        if (const auto it = alone_.find(move); it != alone_.end()) return it->second;
        for (const auto& [known, gain] : alone_) {
            if (!move.attention.empty() && !known.attention.empty() &&
                known.attention.front() == move.attention.front()) {
                return gain;
            }
        }
        return 0.0;
    }

    /// Those left out may be proposed again at the next depth.
    void keep_promising(std::vector<Proposal>& proposals) {
        if (proposals.size() <= options_.max_new) return;
        std::vector<Offer> offers;
        for (const Proposal& it : proposals) {
            offers.push_back({.gain = it.promise, .cost = cost_of(it.plan, options_)});
        }
        std::vector<Proposal> kept;
        const std::vector<size_t> order = by_fronts(offers);
        for (size_t i = 0; i < order.size(); ++i) {
            Proposal& it = proposals[order[i]];
            if (i < options_.max_new) {
                kept.push_back(std::move(it));
            } else {
                seen_.erase(it.plan.plan.canonical());
            }
        }
        proposals = std::move(kept);
    }

    void keep_best_blocks() {
        std::ranges::stable_sort(pool_, std::greater<>{}, [&](const SearchBlock& block) {
            return gain_alone({.block = block});
        });
        if (pool_.size() > options_.pool) pool_.resize(options_.pool);
    }

    std::vector<SearchedPlan> next_frontier(const std::vector<Proposal>& proposals,
                                            size_t depth) const {
        const SearchedPlan root = *planner_.make({}, 0);
        std::vector<const SearchedPlan*> able;
        std::vector<Offer> offers;
        for (const Proposal& it : proposals) {
            if (depth == 1 && !may_follow(root, it.plan, options_)) continue;
            if (!it.plan.worse.empty()) continue;
            able.push_back(&it.plan);
            offers.push_back({.gain = it.plan.gain, .cost = cost_of(it.plan, options_)});
        }
        std::vector<SearchedPlan> frontier;
        for (const size_t i : by_fronts(offers)) {
            if (frontier.size() < options_.width) frontier.push_back(*able[i]);
        }
        return frontier;
    }

    void pick() {
        std::vector<size_t> within;
        std::vector<Offer> offers;
        for (size_t i = 0; i < result_.plans.size(); ++i) {
            if (!within_budget(result_.plans[i], options_)) continue;
            if (!result_.plans[i].worse.empty()) continue;
            within.push_back(i);
            offers.push_back(
                {.gain = result_.plans[i].gain, .cost = cost_of(result_.plans[i], options_)});
        }
        const auto beaten = [&](const Offer& it) {
            const auto beats = [&](const Offer& other) {
                return other.gain >= it.gain && other.cost <= it.cost &&
                       (other.gain > it.gain || other.cost < it.cost);
            };
            const bool by_identity = result_.identity_within && beats({.gain = 0.0, .cost = 1.0});
            return by_identity || std::ranges::any_of(offers, beats);
        };
        for (size_t i = 0; i < within.size(); ++i) {
            if (!beaten(offers[i])) result_.front.push_back(within[i]);
        }
        std::ranges::stable_sort(result_.front, std::greater<>{},
                                 [&](size_t i) { return result_.plans[i].gain; });
        if (result_.front.empty()) {
            if (!result_.identity_within) pick_nearest();
            return;
        }
        const double gain = result_.plans[result_.front.front()].gain;
        if (!result_.identity_within || gain > 0) result_.best = result_.front.front();
    }

    /// How many times the budget that is exceeded most.
    double excess(const SearchedPlan& plan) const {
        return std::max(options_.max_compute ? plan.compute / *options_.max_compute : 0.0,
                        options_.max_kv ? plan.kv / *options_.max_kv : 0.0);
    }

    void pick_nearest() {
        double least = excess(*planner_.make({}, 0));
        double gain = std::numeric_limits<double>::infinity();  // of the identity plan: it is safe
        for (size_t i = 0; i < result_.plans.size(); ++i) {
            const SearchedPlan& it = result_.plans[i];
            if (!it.worse.empty()) continue;
            const double own = excess(it);
            if (own > least || (own == least && it.gain <= gain)) continue;
            least = own;
            gain = it.gain;
            result_.nearest = i;
        }
        SearchState all;
        for (;;) {
            const std::vector<DropGroup> groups = drop_candidates(shape_, all.dropped);
            if (groups.empty()) break;
            all = after(std::move(all), {.attention = groups.front()});
        }
        for (int32_t layer = 0; options_.drop_ffn && layer < shape_.n_layer; ++layer) {
            all.dropped_ffn.push_back(layer);
        }
        const std::optional<SearchedPlan> cheapest = planner_.make(std::move(all), 0);
        result_.reachable = !cheapest || within_budget(*cheapest, options_);
    }

    const ModelShape& shape_;
    const SearchOptions& options_;
    Planner planner_;
    std::set<std::string> seen_;
    std::vector<SearchBlock> pool_;
    std::map<Move, double> alone_;
    SearchResult result_;
};

std::string unit_of(const Measure& measure) {
    const std::string kind = measure.name.substr(0, measure.name.find(':'));
    return kind == "nll" || kind == "kl" || kind == "answer_nll" ? "nats per token" : "0 to 1";
}

Difference shown(const PairedDifference& d) {
    return {.value = d.mean, .low = d.low, .high = d.high};
}

}  // namespace

std::string state_spec(const SearchState& state) {
    std::string spec = block_list(state);
    const auto add = [&](const char* part, const std::vector<int32_t>& layers) {
        if (layers.empty()) return;
        spec += (spec.empty() ? "" : "+") + fmt::format("{}:{}", part, sorted_layers(layers));
    };
    add("drop", state.dropped);
    add("drop-ffn", state.dropped_ffn);
    return spec;
}

std::string state_flags(const SearchState& state) {
    std::string text;
    const auto add = [&](const char* flag, const std::string& value) {
        if (value.empty()) return;
        text += fmt::format("{}{} \"{}\"", text.empty() ? "" : " ", flag, value);
    };
    add("--repeat-layers", block_list(state));
    add("--drop-attention", state.dropped.empty() ? "" : sorted_layers(state.dropped));
    add("--drop-ffn", state.dropped_ffn.empty() ? "" : sorted_layers(state.dropped_ffn));
    return text;
}

std::vector<SearchBlock> single_blocks(const ModelShape& shape, int32_t max_block) {
    int32_t edge = std::max(3, shape.n_layer / 8);
    if (3 * (shape.n_layer - 2 * edge) < shape.n_layer) edge = 0;
    std::vector<SearchBlock> blocks;
    for (int32_t begin = edge; begin < shape.n_layer - edge; ++begin) {
        const int32_t last = std::min(begin + max_block, shape.n_layer - edge);
        for (int32_t end = begin + 1; end <= last; ++end) blocks.push_back({begin, end});
    }
    return blocks;
}

bool within_budget(const SearchedPlan& plan, const SearchOptions& options) {
    return (!options.max_compute || plan.compute <= *options.max_compute) &&
           (!options.max_kv || plan.kv <= *options.max_kv);
}

bool may_follow(const SearchedPlan& from, const SearchedPlan& next, const SearchOptions& options) {
    const auto allowed = [](double before, double now, const std::optional<double>& most) {
        return !most || now <= *most || now <= before;
    };
    return allowed(from.compute, next.compute, options.max_compute) &&
           allowed(from.kv, next.kv, options.max_kv);
}

double cost_of(const SearchedPlan& plan, const SearchOptions& options) {
    return options.max_kv && !options.max_compute ? plan.kv : plan.compute;
}

std::vector<size_t> by_fronts(std::span<const Offer> offers) {
    std::vector<size_t> left(offers.size());
    std::iota(left.begin(), left.end(), size_t{0});
    // By rising cost, of equal costs the best first: an offer is beaten by an earlier one of at
    // least its gain.
    std::ranges::stable_sort(left, [&](size_t a, size_t b) {
        return offers[a].cost < offers[b].cost ||
               (offers[a].cost == offers[b].cost && offers[a].gain > offers[b].gain);
    });
    std::vector<size_t> order;
    while (!left.empty()) {
        double best = -std::numeric_limits<double>::infinity();
        std::vector<size_t> front;
        std::vector<size_t> others;
        for (const size_t i : left) {
            const bool beaten = !front.empty() && offers[i].gain <= best;
            (beaten ? others : front).push_back(i);
            best = std::max(best, offers[i].gain);
        }
        std::ranges::stable_sort(front, std::greater<>{}, [&](size_t i) { return offers[i].gain; });
        order.insert(order.end(), front.begin(), front.end());
        left = std::move(others);
    }
    return order;
}

SearchResult search(const ModelShape& shape, const CacheSettings& cache,
                    std::span<const Measure> measures, size_t rank_measure,
                    const SearchOptions& options, const ScorePlans& score) {
    return Beam(shape, cache, options).run(measures, rank_measure, score);
}

ReportData search_report(const SearchResult& result, const SearchOptions& options,
                         const Trials& trials, const LayerPlan& identity, size_t rank_measure) {
    ReportData data;
    data.n_plans_tried = result.plans.size();
    const PlanItems* const base = trials.find(identity, TrialPart::selection);
    const PlanItems* const base_check = trials.find(identity, TrialPart::validation);
    // The measure that plans were ranked by comes first.
    std::vector<size_t> measures{rank_measure};
    for (size_t m = 0; m < trials.measures().size(); ++m) {
        if (m != rank_measure) measures.push_back(m);
    }
    std::vector<std::map<std::string, bool>> survivors;
    for (const size_t m : measures) {
        const Measure& measure = trials.measures()[m];
        ReportMeasure it{.measure = measure, .unit = unit_of(measure)};
        it.identity.selection = mean_of(base->at(m));
        it.n_selection = base->at(m).size();
        if (base_check != nullptr) {
            it.identity.validation = mean_of(base_check->at(m));
            it.n_validation = base_check->at(m).size();
        }
        data.measures.push_back(std::move(it));
        survivors.push_back(trials.survivors(m));
    }
    std::vector<size_t> order(result.plans.size());
    std::iota(order.begin(), order.end(), size_t{0});
    // The first is what a profile has: of equal ones the cheapest.
    std::ranges::stable_sort(order, {}, [&](size_t i) {
        const SearchedPlan& it = result.plans[i];
        return std::tuple(!within_budget(it, options), !it.worse.empty(), -it.gain,
                          cost_of(it, options));
    });
    for (const size_t i : order) {
        const SearchedPlan& plan = result.plans[i];
        ReportRow row{.flag = state_flags(plan.state),
                      .canonical = plan.plan.canonical(),
                      .compute_ratio = plan.compute,
                      .read_ratio = plan.read,
                      .kv_ratio = plan.kv};
        for (const std::string& name : plan.worse) {
            row.set_aside += (row.set_aside.empty() ? "worse in " : ", ") + name;
        }
        const SearchState& state = plan.state;
        if (state.blocks.size() == 1 && state.dropped.empty() && state.dropped_ffn.empty()) {
            row.begin = state.blocks.front().begin;
            row.end = state.blocks.front().end;
        }
        const PlanItems* const own = trials.find(plan.plan, TrialPart::selection);
        const PlanItems* const check = trials.find(plan.plan, TrialPart::validation);
        for (size_t k = 0; k < measures.size(); ++k) {
            const size_t m = measures[k];
            const auto d = trials.difference(plan.plan, TrialPart::selection, m);
            ReportScore score{.selection = mean_of(own->at(m)),
                              .difference = shown(*d),
                              .survives = survivors[k].at(row.canonical)};
            if (const auto checked = trials.difference(plan.plan, TrialPart::validation, m)) {
                score.validation = mean_of(check->at(m));
                score.validation_difference = shown(*checked);
            }
            row.scores.push_back(score);
        }
        data.rows.push_back(std::move(row));
    }
    data.notes.push_back(
        fmt::format("a plan survives a measure when its difference on the selection items, for "
                    "better or worse, stays significant after Holm's correction over all {} plans",
                    result.plans.size()));
    return data;
}

}  // namespace pleat
