#include "lab/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "plan/test_shapes.h"

namespace pleat {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Layers = std::vector<int32_t>;

TEST(SearchState, PrintsAsSpecAndAsFlags) {
    const SearchState state{.blocks = {{6, 9}, {3, 4}}, .dropped = {12, 2}, .dropped_ffn = {5}};
    EXPECT_EQ(state_spec(state), "6,9;3,4+drop:2,12+drop-ffn:5");
    EXPECT_EQ(state_flags(state),
              "--repeat-layers \"6,9;3,4\" --drop-attention \"2,12\" --drop-ffn \"5\"");
    EXPECT_EQ(state_spec({.dropped = {3}}), "drop:3");
    EXPECT_EQ(state_spec({}), "");
    EXPECT_EQ(state_flags({}), "");
}

TEST(SingleBlocks, LeaveTheBoundaryAloneWhereEnoughIsLeft) {
    EXPECT_THAT(single_blocks(llama_shape({.n_layer = 9}), 2),
                ElementsAre(SearchBlock{3, 4}, SearchBlock{3, 5}, SearchBlock{4, 5},
                            SearchBlock{4, 6}, SearchBlock{5, 6}));
    EXPECT_EQ(single_blocks(llama_shape({.n_layer = 4}), 4).size(), 10U);
    // 48 inner layers of 64.
    EXPECT_EQ(single_blocks(llama_shape(), 1).size(), 48U);
    EXPECT_EQ(single_blocks(llama_shape(), 64).size(), 48U * 49 / 2);
}

SearchedPlan priced(double compute, double kv) {
    return {.state = {}, .plan = resolve("", llama_shape()), .compute = compute, .kv = kv};
}

TEST(Budget, IsKeptByEveryCostThatHasOne) {
    EXPECT_TRUE(within_budget(priced(2, 2), {}));
    EXPECT_TRUE(within_budget(priced(1.1, 2), {.max_compute = 1.1}));
    EXPECT_FALSE(within_budget(priced(1.2, 0.5), {.max_compute = 1.1}));
    EXPECT_FALSE(within_budget(priced(1, 1), {.max_kv = 0.9}));
}

TEST(Budget, IsReachedByDropsAndThenFilled) {
    const SearchOptions options{.max_compute = 1.1, .max_kv = 0.8};
    EXPECT_TRUE(may_follow(priced(1, 1), priced(0.99, 0.95), options));
    EXPECT_FALSE(may_follow(priced(1, 1), priced(1.05, 1.05), options));
    EXPECT_FALSE(may_follow(priced(1, 0.8), priced(1.05, 0.85), options));
    EXPECT_TRUE(may_follow(priced(1, 0.75), priced(1.05, 0.8), options));
    EXPECT_FALSE(may_follow(priced(1.08, 0.5), priced(1.12, 0.5), options));
}

TEST(ByFronts, PutsWhatNothingBeatsFirst) {
    const std::vector<Offer> offers{{0.1, 1.0}, {0.3, 1.2}, {0.2, 1.2}, {-0.5, 0.8}, {0.05, 1.1}};
    EXPECT_THAT(by_fronts(offers), ElementsAre(1, 0, 3, 2, 4));
    EXPECT_THAT(by_fronts({}), IsEmpty());
    const std::vector<Offer> equal{{1, 1}, {1, 1}};
    EXPECT_THAT(by_fronts(equal), ElementsAre(0, 1));
}

const std::vector<Measure> nll{{"nll"}};

/// A plan's loss is the sum over its passes that are not the identity's: a layer that is run again
/// gains, or a lost sub-layer loses, what the tables say.
struct Fake {
    std::map<int32_t, double> repeat = {};
    std::map<int32_t, double> drop = {};
    std::vector<std::string> scored = {};
    std::vector<size_t> calls = {};

    std::optional<std::vector<PlanItems>> operator()(const std::vector<LayerPlan>& plans) {
        EXPECT_TRUE(plans.front().is_identity());
        calls.push_back(plans.size() - 1);
        std::vector<PlanItems> scores;
        for (const LayerPlan& plan : plans) {
            if (&plan != &plans.front()) scored.push_back(plan.canonical());
            double loss = 1.0;
            std::map<int32_t, int> visits;
            for (const Pass& pass : plan) {
                if (++visits[pass.layer] == 2) loss -= repeat[pass.layer];
                if (!pass.attention && visits[pass.layer] == 1) loss += drop[pass.layer];
            }
            scores.push_back({{.sum = {loss, loss}, .weight = {1, 1}}});
        }
        return scores;
    }
};

SearchResult run(const ModelShape& shape, const SearchOptions& options, Fake& fake) {
    return search(shape, {}, nll, 0, options, std::ref(fake));
}

TEST(Search, JoinsTheBestBlocks) {
    Fake fake{.repeat = {{3, 0.2}, {4, -0.5}, {5, 0.1}}, .drop = {}};
    for (int32_t layer = 0; layer < 9; ++layer) fake.drop[layer] = 0.3 + 0.01 * layer;
    const SearchResult found = run(llama_shape({.n_layer = 9}), {.depth = 2, .max_block = 2}, fake);
    ASSERT_TRUE(found.best);
    EXPECT_EQ(state_spec(found.plans[*found.best].state), "3,4;5,6");
    EXPECT_NEAR(found.plans[*found.best].gain, 0.3, 1e-12);
    EXPECT_EQ(fake.calls.front(), 5U + 9U);
    // Best first, and each cheaper than the one before.
    for (size_t i = 1; i < found.front.size(); ++i) {
        EXPECT_LT(found.plans[found.front[i]].compute, found.plans[found.front[i - 1]].compute);
    }
}

TEST(Search, ScoresEveryPathOnce) {
    Fake fake{.repeat = {{3, 0.2}, {4, 0.3}, {5, 0.1}}, .drop = {}};
    run(llama_shape({.n_layer = 9}), {.depth = 3, .max_block = 3, .max_new = 1000}, fake);
    const std::set<std::string> different(fake.scored.begin(), fake.scored.end());
    EXPECT_EQ(different.size(), fake.scored.size());
    EXPECT_FALSE(different.contains("0..8"));
}

TEST(Search, ComesUnderABudgetByDropsAndThenRepeats) {
    Fake fake{.repeat = {{3, 0.2}, {4, 0.1}, {5, -0.1}}, .drop = {}};
    for (int32_t layer = 0; layer < 9; ++layer) fake.drop[layer] = 0.01 * (layer + 1);
    // Of nine layers' cache eight: two drops make room for one repeat.
    const SearchResult found =
        run(llama_shape({.n_layer = 9}), {.depth = 3, .max_block = 1, .max_kv = 0.89}, fake);
    ASSERT_TRUE(found.best);
    EXPECT_FALSE(found.identity_within);
    EXPECT_EQ(state_spec(found.plans[*found.best].state), "3,4+drop:0..1");
    for (const size_t i : found.front) EXPECT_LE(found.plans[i].kv, 0.89);
}

TEST(Search, SaysWhenNothingIsWithinTheBudget) {
    Fake fake;
    const SearchResult found = run(llama_shape({.n_layer = 9}), {.depth = 2, .max_kv = 0.5}, fake);
    EXPECT_FALSE(found.best);
    EXPECT_FALSE(found.identity_within);
    EXPECT_THAT(found.front, IsEmpty());
}

TEST(Search, NamesTheNearestWhereNothingIsWithinTheBudget) {
    const ModelShape shape = llama_shape({.n_layer = 9});
    Fake fake;
    for (int32_t layer = 0; layer < 9; ++layer) fake.drop[layer] = 0.1 * layer;
    const SearchResult found = run(shape, {.depth = 2, .max_kv = 0.5}, fake);
    ASSERT_TRUE(found.nearest);
    EXPECT_EQ(state_spec(found.plans[*found.nearest].state), "drop:0..1");
    EXPECT_TRUE(found.reachable);
    EXPECT_FALSE(run(shape, {.depth = 2, .max_compute = 0.01}, fake).reachable);
    EXPECT_FALSE(run(hybrid_shape({.n_layer = 12}), {.depth = 2, .max_kv = 0.001}, fake).reachable);
    // Within reach, nothing is "nearest".
    EXPECT_FALSE(run(shape, {.depth = 2, .max_kv = 0.9}, fake).nearest);
}

TEST(Search, KeepsTheIdentityPlanWhereNothingIsBetter) {
    Fake fake;
    for (int32_t layer = 0; layer < 9; ++layer) {
        fake.repeat[layer] = -0.1;
        fake.drop[layer] = 0.1;
    }
    const SearchResult found = run(llama_shape({.n_layer = 9}), {.depth = 2}, fake);
    EXPECT_FALSE(found.best);
    // Drops are worse, but cheaper.
    EXPECT_FALSE(found.front.empty());
    for (const size_t i : found.front) EXPECT_LT(found.plans[i].compute, 1.0);
}

TEST(Search, PassesOverWhatIsWorseInAGuard) {
    const std::vector<Measure> measures{{"nll"}, {"exact:retrieval", true}};
    // The drop of layer 2 would be the best plan, and that of layer 1 the next; but without 2 the
    // first ten of twelve questions are answered wrong.
    const auto score = [](const std::vector<LayerPlan>& plans) {
        std::vector<PlanItems> scores;
        for (const LayerPlan& plan : plans) {
            double loss = 1.0;
            std::vector<double> right(12, 1.0);
            for (const Pass& pass : plan) {
                if (pass.attention) continue;
                loss += pass.layer == 2 ? -0.2 : pass.layer == 1 ? -0.1 : 0.3;
                if (pass.layer == 2) std::fill_n(right.begin(), 10, 0.0);
            }
            scores.push_back({{.sum = {loss, loss}, .weight = {1, 1}},
                              {.sum = right, .weight = std::vector<double>(12, 1.0)}});
        }
        return std::optional(scores);
    };
    const auto best_of = [&](const SearchOptions& options) {
        const SearchResult found =
            search(llama_shape({.n_layer = 9}), {}, measures, 0, options, score);
        for (const SearchedPlan& it : found.plans) {
            const bool loses = std::ranges::count(it.state.dropped, 2) > 0;
            EXPECT_EQ(it.worse.empty(), !loses || options.guards.empty());
            // Nothing goes on from there: it is met alone, and as a last move.
            if (loses && it.depth > 1 && !options.guards.empty()) {
                EXPECT_EQ(it.state.dropped.back(), 2);
            }
        }
        return state_spec(found.plans[found.best.value()].state);
    };
    EXPECT_EQ(best_of({.depth = 3, .max_block = 1}), "drop:1..2");
    EXPECT_EQ(best_of({.depth = 3, .max_block = 1, .guards = {1}}), "drop:1");
}

TEST(Search, FollowsTheRolesInItsDrops) {
    const SearchOptions options{.depth = 3, .max_block = 1, .max_new = 1000};
    for (const ModelShape& shape : {hybrid_shape({.n_layer = 12}), shared_shape()}) {
        Fake fake;
        const SearchResult found = run(shape, options, fake);
        for (const SearchedPlan& plan : found.plans) {
            for (const int32_t layer : plan.state.dropped) {
                EXPECT_TRUE(droppable(shape.layers[static_cast<size_t>(layer)].role));
            }
            EXPECT_TRUE(!shape.hybrid() || plan.state.dropped.size() < 3U);
        }
        EXPECT_GT(found.plans.size(), 20U);
    }
}

TEST(Search, ScoresAtMostSoManyNewPlansADepth) {
    Fake fake;
    run(llama_shape({.n_layer = 9}), {.width = 4, .depth = 4, .max_new = 7}, fake);
    ASSERT_EQ(fake.calls.size(), 4U);
    for (size_t i = 1; i < 4; ++i) EXPECT_EQ(fake.calls[i], 7U);
}

TEST(Search, StopsWhenItIsTold) {
    const SearchResult found = search(
        llama_shape({.n_layer = 9}), {}, nll, 0, {},
        [](const std::vector<LayerPlan>&) { return std::optional<std::vector<PlanItems>>(); });
    EXPECT_FALSE(found.complete);
}

}  // namespace
}  // namespace pleat
