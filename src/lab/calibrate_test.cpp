#include "lab/calibrate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

#include "plan/test_shapes.h"

namespace pleat {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Layers = std::vector<int32_t>;

std::vector<DropGroup> candidates(const ModelShape& shape, const Layers& dropped = {}) {
    return drop_candidates(shape, dropped);
}

TEST(DropCandidates, AreAllLayersThatStillHaveTheirAttention) {
    EXPECT_THAT(candidates(llama_shape({.n_layer = 4}), {2}),
                ElementsAre(Layers{0}, Layers{1}, Layers{3}));
    EXPECT_THAT(candidates(window_shape({.n_layer = 3, .n_swa = 512}), {1, 0}),
                ElementsAre(Layers{2}));
}

TEST(DropCandidates, OfAHybridAreNoRecurrentLayersAndNeverTheLastAttention) {
    const ModelShape shape = hybrid_shape({.n_layer = 12});
    EXPECT_THAT(candidates(shape), ElementsAre(Layers{3}, Layers{7}, Layers{11}));
    EXPECT_THAT(candidates(shape, {7}), ElementsAre(Layers{3}, Layers{11}));
    EXPECT_THAT(candidates(shape, {7, 3}), IsEmpty());
}

TEST(DropCandidates, TakeTheReadersOfSharedKvAlongWithTheirOwner) {
    // 4 and 6 read layer 2, 5 and 7 read layer 3.
    const ModelShape shape = shared_shape();
    EXPECT_THAT(candidates(shape),
                ElementsAre(Layers{0}, Layers{1}, Layers{2, 4, 6}, Layers{3, 5, 7}, Layers{4},
                            Layers{5}, Layers{6}, Layers{7}));
    EXPECT_THAT(candidates(shape, {4, 0}), ElementsAre(Layers{1}, Layers{2, 6}, Layers{3, 5, 7},
                                                       Layers{5}, Layers{6}, Layers{7}));
}

TEST(DropCandidates, AlwaysResolve) {
    for (const ModelShape& shape : {llama_shape({.n_layer = 5}), hybrid_shape({.n_layer = 12}),
                                    window_shape(), shared_shape()}) {
        for (const uint32_t seed : {1U, 2U, 3U, 4U, 5U}) {
            std::mt19937 random(seed);
            Layers dropped;
            for (;;) {
                const auto groups = candidates(shape, dropped);
                if (groups.empty()) break;
                for (const DropGroup& group : groups) {
                    Layers all = dropped;
                    all.insert(all.end(), group.begin(), group.end());
                    EXPECT_EQ(drop_plan(shape, all).size(), shape.layers.size());
                }
                const DropGroup& taken = groups[random() % groups.size()];
                dropped.insert(dropped.end(), taken.begin(), taken.end());
            }
        }
    }
}

TEST(DropSpec, IsWhatOneWouldWrite) {
    EXPECT_EQ(drop_spec({}), "");
    EXPECT_EQ(drop_spec(Layers{7, 3, 8, 9}), "drop:3,7..9");
    EXPECT_TRUE(drop_plan(llama_shape(), {}).is_identity());
}

const std::vector<Measure> measures{
    {"nll"}, {"kl"}, {"top1", true}, {"exact:retrieval", true}, {"answer_nll:retrieval"}};

ItemScores items(std::vector<double> values) {
    const size_t n = values.size();
    return {.sum = std::move(values), .weight = std::vector<double>(n, 1.0)};
}

/// Eight items of each measure, all the same.
PlanItems flat(double nll, double kl, double exact = 1.0, double answer_nll = 0.1) {
    return {items(std::vector<double>(8, nll)), items(std::vector<double>(8, kl)),
            items(std::vector<double>(8, 1.0)), items(std::vector<double>(8, exact)),
            items(std::vector<double>(8, answer_nll))};
}

TEST(PlanLoss, OfThePerplexityIsRelativeToTheIdentityPlan) {
    const PlanLoss loss = plan_loss(measures, flat(1.0 + std::log(1.02), 0.25), flat(1.0, 0), 0.05);
    EXPECT_NEAR(loss.perplexity, 0.02, 1e-12);
    EXPECT_NEAR(loss.perplexity_error, 0.0, 1e-9);
    EXPECT_DOUBLE_EQ(loss.kl, 0.25);
    EXPECT_THAT(loss.worse, IsEmpty());
}

TEST(PlanLoss, IsThatOfTheTextThatLosesMost) {
    const std::vector<Measure> two{{"nll:a"}, {"kl:a"}, {"nll:b"}, {"kl:b"}};
    const PlanItems identity{items({1, 1}), items({0, 0}), items({2, 2}), items({0, 0})};
    const PlanItems plan{items({0.9, 0.9}), items({0.3, 0.3}), items({2.1, 2.1}),
                         items({0.2, 0.2})};
    const PlanLoss loss = plan_loss(two, plan, identity, 0.05);
    EXPECT_NEAR(loss.perplexity, std::exp(0.1) - 1, 1e-12);
    EXPECT_NEAR(loss.kl, 0.3, 1e-12);
}

TEST(PlanLoss, NamesProbesOnlyWhereTheyAreSignificantlyWorse) {
    const PlanItems identity = flat(1, 0, 1.0, 0.5);
    EXPECT_THAT(plan_loss(measures, flat(1, 0, 0.0, 0.75), identity, 0.05).worse,
                ElementsAre("exact:retrieval", "answer_nll:retrieval"));
    EXPECT_THAT(plan_loss(measures, flat(1, 0, 1.0, 0.25), identity, 0.05).worse, IsEmpty());
    // One lost answer of eight is what chance does.
    PlanItems one_lost = identity;
    one_lost[3].sum[2] = 0.0;
    EXPECT_THAT(plan_loss(measures, one_lost, identity, 0.05).worse, IsEmpty());
}

/// Scores from the layers that lost their attention: each adds its own loss.
struct Fake {
    std::map<int32_t, double> nll;
    std::map<int32_t, double> kl = {};
    std::map<int32_t, double> answers = {};
    size_t n_plans = 0;
    size_t stop_after = SIZE_MAX;

    std::optional<std::vector<PlanItems>> operator()(const std::vector<LayerPlan>& plans) {
        if (n_plans >= stop_after) return std::nullopt;
        EXPECT_TRUE(plans.front().is_identity());
        n_plans += plans.size() - 1;
        std::vector<PlanItems> scores;
        for (const LayerPlan& plan : plans) {
            double loss = 1.0;
            double divergence = 0.0;
            double lost = 0.0;
            for (const Pass& pass : plan) {
                if (pass.attention) continue;
                loss += nll[pass.layer];
                divergence += kl[pass.layer];
                lost += answers[pass.layer];
            }
            scores.push_back(flat(loss, divergence, 1.0, 0.1 + lost));
        }
        return scores;
    }
};

Calibration run(const ModelShape& shape, const DropLimits& limits, Fake fake) {
    return calibrate(shape, {}, measures, limits, std::ref(fake));
}

TEST(Calibrate, DropsTheLeastMissedFirstUpToTheLimit) {
    const Fake fake{.nll = {{0, 0.5}, {1, 0.004}, {2, 0.002}, {3, 0.005}}};
    const ModelShape shape = llama_shape({.n_layer = 4});
    const Calibration found = run(shape, {.max_loss = 0.01}, fake);
    EXPECT_THAT(found.dropped, ElementsAre(2, 1));
    EXPECT_EQ(found.end, CalibrationEnd::limit);
    ASSERT_EQ(found.rounds.size(), 3U);
    EXPECT_EQ(found.rounds[0].candidates.size(), 4U);
    EXPECT_EQ(found.rounds[2].candidates.size(), 2U);
    EXPECT_FALSE(found.rounds[2].chosen);

    const auto curve = calibration_curve(found, shape, {}, {.max_loss = 0.01});
    ASSERT_EQ(curve.size(), 2U);
    EXPECT_EQ(curve[1].plan, "drop:1..2");
    EXPECT_THAT(curve[1].dropped, ElementsAre(2, 1));
    EXPECT_NEAR(curve[1].loss, std::exp(0.006) - 1, 1e-12);
    EXPECT_EQ(curve[1].kv_bytes,
              plan_cost(drop_plan(shape, Layers{1, 2}), shape, {}).kv_bytes_full);
}

TEST(Calibrate, RanksByKlWhereOnlyKlIsLimited) {
    const Fake fake{.nll = {{0, 0.1}, {1, 0.2}}, .kl = {{0, 0.2}, {1, 0.1}}};
    const ModelShape shape = llama_shape({.n_layer = 2});
    EXPECT_THAT(run(shape, {.max_kl = 0.15}, fake).dropped, ElementsAre(1));
    EXPECT_THAT(run(shape, {.max_loss = 0.15, .max_kl = 0.25}, fake).dropped, ElementsAre(0));
}

TEST(Calibrate, TakesADropThatImprovesTheText) {
    const Fake fake{.nll = {{0, 0.1}, {1, -0.1}}};
    EXPECT_THAT(run(llama_shape({.n_layer = 2}), {.max_loss = 0.0}, fake).dropped,
                ElementsAre(1, 0));
}

TEST(Calibrate, DropsUntilTheCacheIsSmallEnough) {
    const Fake fake{.nll = {{0, 3}, {1, 1}, {2, 2}, {3, 4}}};
    const ModelShape shape = llama_shape({.n_layer = 4});
    const Calibration found = run(shape, {.keep_kv = 0.5}, fake);
    EXPECT_THAT(found.dropped, ElementsAre(1, 2));
    EXPECT_EQ(found.end, CalibrationEnd::reached);
    EXPECT_EQ(found.rounds.size(), 2U);  // none to see that it is enough
    EXPECT_THAT(run(shape, {.keep_kv = 0.51}, fake).dropped, ElementsAre(1, 2));
    EXPECT_THAT(run(shape, {.max_loss = 2, .keep_kv = 0.1}, fake).dropped, ElementsAre(1));
}

TEST(Calibrate, TriesNoDropsThatFreeNothingWhereTheCacheCounts) {
    const Fake fake{.nll = {{0, 1}, {1, 2}, {2, 3}, {3, 4}}};  // readers lose nothing
    const Calibration found = run(shared_shape(), {.keep_kv = 0.5}, fake);
    EXPECT_THAT(found.dropped, ElementsAre(0, 1));
    EXPECT_EQ(found.rounds[0].candidates.size(), 4U);
}

TEST(Calibrate, LeavesAHybridItsLastAttention) {
    const Calibration found = run(hybrid_shape({.n_layer = 12}), {.keep_kv = 0.0}, {});
    EXPECT_THAT(found.dropped, ElementsAre(3, 7));
    EXPECT_EQ(found.end, CalibrationEnd::nothing_left);
}

TEST(Calibrate, PassesOverWhatMakesAnswersWorse) {
    const Fake fake{.nll = {{0, 0.001}, {1, 0.002}, {2, 0.5}}, .answers = {{0, 2.0}}};
    const Calibration found = run(llama_shape({.n_layer = 3}), {.max_loss = 0.01}, fake);
    EXPECT_THAT(found.dropped, ElementsAre(1));
    EXPECT_EQ(found.end, CalibrationEnd::probes);
    EXPECT_THAT(found.rounds[0].candidates[0].loss.worse, ElementsAre("answer_nll:retrieval"));
}

TEST(Calibrate, CanBeStoppedBetweenRounds) {
    const Fake fake{.nll = {}, .stop_after = 5};
    const Calibration found = run(llama_shape({.n_layer = 4}), {.max_loss = 1}, fake);
    EXPECT_EQ(found.end, CalibrationEnd::interrupted);
    EXPECT_EQ(found.rounds.size(), 2U);
}

TEST(BrokenLimits, AreSaidWithBothNumbers) {
    const PlanLoss small{.perplexity = 0.009, .kl = 0.01};
    const PlanLoss great{.perplexity = 0.19, .kl = 0.03, .worse = {"exact:logic"}};
    EXPECT_THAT(broken_limits({.max_loss = 0.01, .max_kl = 0.02}, 0.5, small, small), IsEmpty());
    EXPECT_THAT(broken_limits({.max_loss = 0.01, .max_kl = 0.02}, 0.5, small, great),
                ElementsAre("--max-loss 1 % does not hold on validation: perplexity +0.900 % on "
                            "selection, +19.000 % on validation",
                            "--kl 0.02 does not hold on validation: KL 0.01000 on selection, "
                            "0.03000 on validation",
                            "exact:logic is significantly worse than the identity plan's on "
                            "validation"));
    EXPECT_THAT(broken_limits({.keep_kv = 0.01}, 1.0 / 3, small, std::nullopt),
                ElementsAre("--keep-kv: asked 1 % of the K/V bytes, reached 33.33 %"));
    EXPECT_THAT(broken_limits({.keep_kv = 0.5}, 0.5, std::nullopt, std::nullopt), IsEmpty());
}

TEST(Calibrate, NeedsALimit) {
    EXPECT_THAT(error_of([] { run(llama_shape(), {}, {}); }), HasSubstr("no limit"));
}

}  // namespace
}  // namespace pleat
