#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lab/calibrate.h"
#include "lab/report.h"
#include "lab/trials.h"
#include "plan/cost.h"
#include "plan/plan.h"
#include "plan/shape.h"

namespace pleat {

/// A block of layers [begin, end) that is run once more.
struct SearchBlock {
    int32_t begin = 0;
    int32_t end = 0;
    auto operator<=>(const SearchBlock&) const = default;
};

/// What a searched plan is made of.
struct SearchState {
    std::vector<SearchBlock> blocks = {};   ///< in the order of insertion
    std::vector<int32_t> dropped = {};      ///< attention, in the order of dropping
    std::vector<int32_t> dropped_ffn = {};  ///< likewise
    bool operator==(const SearchState&) const = default;
};

/// One-line SPEC, and the flags that a person writes; both empty for the identity.
std::string state_spec(const SearchState& state);
std::string state_flags(const SearchState& state);

struct SearchOptions {
    size_t width = 8;  ///< plans that go on from one depth to the next
    size_t depth = 3;  ///< moves of a plan at most
    size_t pool = 16;  ///< best single blocks that are inserted from depth 2 on
    int32_t max_block = 8;
    size_t max_new = 64;  ///< plans that are scored at a depth beyond the first
    bool drop_ffn = false;
    std::optional<double> max_compute = {};  ///< FLOPs per token, to the identity plan
    std::optional<double> max_kv = {};       ///< cache bytes, to the identity plan
    /// Measures in which no plan may be significantly worse than the identity plan: one that is
    /// goes no further, and is not chosen.
    std::vector<size_t> guards = {};
    double alpha = 0.05;  ///< of the test for that
};

/// Blocks of at most max_block layers that leave the boundary layers alone (the first and last
/// max(3, n_layer / 8), where at least a third of the layers is left), by begin, then end.
std::vector<SearchBlock> single_blocks(const ModelShape& shape, int32_t max_block);

struct SearchedPlan {
    SearchState state;
    LayerPlan plan;
    size_t depth = 0;
    double compute = 1.0;  ///< ratios to the identity plan
    double read = 1.0;
    double kv = 1.0;    ///< cache bytes; 1 where the identity has none
    double gain = 0.0;  ///< mean paired difference to the identity on selection, more is better
    std::vector<std::string> worse = {};  ///< guards in which it is significantly worse
};

/// Is the plan within the budgets?
bool within_budget(const SearchedPlan& plan, const SearchOptions& options);
/// May `next` follow `from`? Not when it adds to a cost that is, or would be, over its budget. So a
/// plan comes within a budget by drops, and repeats wait until there is room.
bool may_follow(const SearchedPlan& from, const SearchedPlan& next, const SearchOptions& options);

/// The cost that quality is held against: cache bytes where only those have a budget, else FLOPs.
double cost_of(const SearchedPlan& plan, const SearchOptions& options);

/// A number where more is better, and its price.
struct Offer {
    double gain = 0.0;
    double cost = 0.0;
};
/// Places of the offers that go first: front by front (those that no other one left beats in both),
/// in a front the greatest gain first. Ties keep their order.
std::vector<size_t> by_fronts(std::span<const Offer> offers);

struct SearchResult {
    bool complete = true;
    std::vector<SearchedPlan> plans = {};  ///< all that were scored, in that order
    /// Plans within the budgets and the guards that neither another one nor the identity plan beats
    /// in gain and cost, by falling gain.
    std::vector<size_t> front = {};
    /// The greatest gain of these. None: the identity plan is better, or nothing is
    /// within.
    std::optional<size_t> best = {};
    bool identity_within = true;  ///< is the identity plan itself within the budgets?
    /// Where nothing is within the budgets: what comes nearest of all that the guards let through.
    /// None: the identity plan is as near.
    std::optional<size_t> nearest = {};
    bool reachable = true;  ///< would all drops that may be made come within the budgets?
};

/// Beam search from the identity plan. Depth 1 scores every single block and every single drop;
/// each later depth adds to each plan of the beam a block of the pool, or one more drop (as
/// calibrate drops). Plans of the same path count once. Where there are too many, those go first
/// that promise most: the parent's gain and that of the move alone.
SearchResult search(const ModelShape& shape, const CacheSettings& cache,
                    std::span<const Measure> measures, size_t rank_measure,
                    const SearchOptions& options, const ScorePlans& score);

/// The result as a report's rows, those within the budgets first, each part by falling gain; with
/// intervals, Holm's marks over all plans, and what was scored on the validation part.
ReportData search_report(const SearchResult& result, const SearchOptions& options,
                         const Trials& trials, const LayerPlan& identity, size_t rank_measure);

}  // namespace pleat
