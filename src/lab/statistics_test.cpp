#include "lab/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/error.h"
#include "lab/random.h"

namespace pleat {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

ItemScores questions(std::vector<double> scores) {
    const size_t n = scores.size();
    return {.sum = std::move(scores), .weight = std::vector<double>(n, 1.0)};
}

template <typename F>
std::string message_of(F f) {
    try {
        f();
    } catch (const Error& e) {
        return e.what();
    }
    return "no error";
}

/// A number in [0, 1).
double unit(SplitMix64& random) { return static_cast<double>(random.next() >> 11) * 0x1p-53; }

TEST(SplitMix64, GivesThePublishedNumbers) {  // of the authors' C code, seed 1234567
    SplitMix64 random(1234567);
    EXPECT_EQ(random.next(), 6457827717110365317U);
    EXPECT_EQ(random.next(), 3203168211198807973U);
    EXPECT_EQ(random.next(), 9817491932198370423U);
}

TEST(MeanOf, IsTheSumOverTheWeight) {
    const Score score = mean_of({.sum = {2, 4, 9}, .weight = {1, 2, 3}});
    EXPECT_DOUBLE_EQ(score.value, 2.5);
    // residuals -0.5, -1, 1.5: squares 3.5; sqrt(3 / 2 * 3.5) / 6
    EXPECT_DOUBLE_EQ(score.error, std::sqrt(5.25) / 6);
}

TEST(MeanOf, HasTheUsualStandardErrorWhenWeightsAreEqual) {
    // mean 5, deviations -3, -1, -1, -1, 0, 0, 2, 4: s^2 = 32 / 7
    const Score score = mean_of(questions({2, 4, 4, 4, 5, 5, 7, 9}));
    EXPECT_DOUBLE_EQ(score.value, 5.0);
    EXPECT_DOUBLE_EQ(score.error, std::sqrt(32.0 / 7 / 8));
}

TEST(MeanOf, DoesNotDependOnTheUnitOfTheWeights) {
    const Score one = mean_of({.sum = {2, 4, 9}, .weight = {1, 2, 3}});
    const Score ten = mean_of({.sum = {20, 40, 90}, .weight = {10, 20, 30}});
    EXPECT_DOUBLE_EQ(one.value, ten.value);
    EXPECT_DOUBLE_EQ(one.error, ten.error);
}

TEST(MeanOf, HasNoErrorWhenNothingVaries) {
    EXPECT_EQ(mean_of(questions({0.5, 0.5, 0.5})), (Score{0.5, 0.0}));
}

TEST(MeanOf, KnowsNothingOfTheSpreadOfOneItem) {
    EXPECT_EQ(mean_of(questions({3})), (Score{3.0, infinity}));
}

TEST(MeanOf, AllowsItemsWithoutScoredTokens) {
    EXPECT_DOUBLE_EQ(mean_of({.sum = {3, 0}, .weight = {2, 0}}).value, 1.5);
}

TEST(MeanOf, RefusesWhatHasNoMean) {
    EXPECT_EQ(message_of([] { mean_of({}); }), "a mean of no items; at least one is needed");
    EXPECT_EQ(message_of([] {
                  mean_of(questions({1, not_a_number}));
              }),
              "the score of item 1 is nan, which no mean can hold");
    EXPECT_EQ(message_of([] { mean_of(questions({-infinity})); }),
              "the score of item 0 is -inf, which no mean can hold");
    EXPECT_EQ(message_of([] { mean_of({.sum = {1}, .weight = {-1}}); }),
              "the weight of item 0 is -1; it counts tokens, so it is >= 0");
    EXPECT_EQ(message_of([] {
                  mean_of({.sum = {1, 2}, .weight = {0, 0}});
              }),
              "the weights of all 2 items are 0, so they have no mean");
    EXPECT_EQ(message_of([] {
                  mean_of({.sum = {1, 2}, .weight = {1}});
              }),
              "2 scores have 1 weights; every item has one");
}

TEST(MeanOfProperty, CoversTheTruthAboutAsOftenAsItsErrorSays) {
    int covered = 0;
    for (uint64_t seed = 0; seed < 1000; ++seed) {
        SplitMix64 random(seed);
        ItemScores items;
        for (int i = 0; i < 100; ++i) {
            const double weight = 1 + random.below(20);
            items.weight.push_back(weight);
            items.sum.push_back(weight * (0.4 + 0.2 * unit(random)));  // 0.5 a token
        }
        const Score score = mean_of(items);
        if (std::abs(score.value - 0.5) <= 1.96 * score.error) ++covered;
    }
    EXPECT_GE(covered, 920);
    EXPECT_LE(covered, 975);
}

TEST(PerplexityOf, IsTheExponentialWithAnErrorOfFirstOrder) {
    const Score score = perplexity_of({std::log(8.0), 0.25});
    EXPECT_DOUBLE_EQ(score.value, 8.0);
    EXPECT_DOUBLE_EQ(score.error, 2.0);
    EXPECT_EQ(perplexity_of({0.0, infinity}), (Score{1.0, infinity}));
    EXPECT_THROW(perplexity_of({not_a_number, 0.0}), Error);
    EXPECT_THROW(perplexity_of({1.0, not_a_number}), Error);
}

TEST(PartOf, TakesTheItemsThatAreNamed) {
    const ItemScores items{.sum = {1, 2, 3}, .weight = {4, 5, 6}};
    const std::vector<size_t> indices{2, 0};
    EXPECT_EQ(part_of(items, indices), (ItemScores{.sum = {3, 1}, .weight = {6, 4}}));
    const std::vector<size_t> outside{3};
    EXPECT_EQ(message_of([&] { part_of(items, outside); }),
              "item 3 of 3 was asked for; they count from 0");
}

TEST(StudentTwoSided, AgreesWithTables) {
    EXPECT_NEAR(student_two_sided(12.706, 1), 0.05, 1e-5);
    EXPECT_NEAR(student_two_sided(2.228, 10), 0.05, 2e-5);
    EXPECT_NEAR(student_two_sided(-3.169, 10), 0.01, 2e-5);
    EXPECT_NEAR(student_two_sided(1.962, 1000), 0.05, 5e-5);
    EXPECT_DOUBLE_EQ(student_two_sided(0, 7), 1.0);
    EXPECT_EQ(student_two_sided(infinity, 7), 0.0);
}

TEST(StudentTwoSided, EqualsItsClosedForms) {
    for (const double t : {0.01, 0.5, 1.0, 3.0, 40.0}) {
        SCOPED_TRACE(t);
        // Cauchy, and 1 - t / sqrt(2 + t^2) written without cancellation
        EXPECT_NEAR(student_two_sided(t, 1) / (2 / M_PI * std::atan(1 / t)), 1.0, 1e-12);
        const double root = std::sqrt(2 + t * t);
        EXPECT_NEAR(student_two_sided(t, 2) / (2 / (root * (root + t))), 1.0, 1e-12);
    }
    EXPECT_NEAR(student_two_sided(2.0, 1e7), std::erfc(2.0 / std::sqrt(2.0)), 1e-7);
}

TEST(StudentTwoSided, RefusesWhatIsNoNumber) {
    EXPECT_THROW(student_two_sided(not_a_number, 3), Error);
    EXPECT_THROW(student_two_sided(1, 0), Error);
    EXPECT_THROW(student_two_sided(1, not_a_number), Error);
}

TEST(PairedDifference, IsThePairedTTest) {
    // Differences 1, 2, 3, 4, 5: mean 3, s^2 = 2.5, error sqrt(0.5), t = 4.2426 with 4 degrees
    const ItemScores identity = questions({10, 20, 30, 40, 50});
    const PairedDifference d = paired_difference(questions({11, 22, 33, 44, 55}), identity);
    EXPECT_DOUBLE_EQ(d.mean, 3.0);
    EXPECT_DOUBLE_EQ(d.error, std::sqrt(0.5));
    EXPECT_EQ(d.n_items, 5U);
    EXPECT_EQ(d.n_changed, 5U);
    EXPECT_NEAR(student_two_sided(3 / std::sqrt(0.5), 4), 0.013236, 1e-6);
    EXPECT_DOUBLE_EQ(d.p, 0.0625);  // five signs give no less than 2 / 2^5
}

TEST(PairedDifference, WeighsItemsAsTheMeanDoes) {
    const ItemScores identity{.sum = {1, 2}, .weight = {1, 3}};
    const ItemScores plan{.sum = {2, 5}, .weight = {1, 3}};
    EXPECT_DOUBLE_EQ(paired_difference(plan, identity).mean, 1.0);  // (1 + 3) / (1 + 3)
}

TEST(PairedDifference, OfAPlanToItselfIsNothing) {
    const ItemScores identity = questions({0.1, 0.7, 0.4});
    const PairedDifference d = paired_difference(identity, identity);
    EXPECT_EQ(d, (PairedDifference{.n_items = 3}));
}

TEST(PairedDifference, WithoutSpreadHasNoErrorButIsNotCertain) {
    const PairedDifference d =
        paired_difference(questions({1, 1, 1, 1}), questions({0.5, 0.5, 0.5, 0.5}));
    EXPECT_EQ(d.error, 0.0);
    EXPECT_EQ(d.low, 0.5);
    EXPECT_EQ(d.high, 0.5);
    EXPECT_DOUBLE_EQ(d.p, 0.125);
}

TEST(PairedDifference, OfOneItemSaysNothing) {
    const PairedDifference d = paired_difference(questions({1}), questions({0}));
    EXPECT_EQ(d.mean, 1.0);
    EXPECT_EQ(d.error, infinity);
    EXPECT_EQ(d.low, -infinity);
    EXPECT_EQ(d.high, infinity);
    EXPECT_EQ(d.p, 1.0);
}

TEST(PairedDifference, OfFewChangedItemsIsNeverSurerThanASignTest) {
    ItemScores identity = questions(std::vector<double>(1000, 0.0));
    ItemScores plan = identity;
    std::fill_n(plan.sum.begin(), 3, 1.0);
    const PairedDifference d = paired_difference(plan, identity);
    EXPECT_EQ(d.n_changed, 3U);
    EXPECT_DOUBLE_EQ(d.p, 0.25);
}

TEST(PairedDifference, TakesTheIntervalFromCountedResamples) {
    // Two items 0 and 1: means are 0, 0.5 or 1 with chances 1/4, 1/2, 1/4.
    const ItemScores identity = questions({0, 0});
    const ItemScores plan = questions({0, 1});
    const PairedDifference wide = paired_difference(plan, identity, {.level = 0.9});
    EXPECT_EQ(wide.low, 0.0);
    EXPECT_EQ(wide.high, 1.0);
    const PairedDifference narrow = paired_difference(plan, identity, {.level = 0.4});
    EXPECT_EQ(narrow.low, 0.5);
    EXPECT_EQ(narrow.high, 0.5);
}

TEST(PairedDifference, TakesTheOutermostOfVeryFewResamples) {
    const ItemScores identity = questions({0, 0, 0});
    const PairedDifference d = paired_difference(questions({1, 2, 6}), identity,
                                                 {.seed = 5, .n_resamples = 1, .level = 0.95});
    EXPECT_EQ(d.low, d.high);
}

TEST(PairedDifference, IsTheSameForTheSameSeed) {
    SplitMix64 random(3);
    ItemScores plan;
    ItemScores identity;
    for (int i = 0; i < 50; ++i) {
        plan.sum.push_back(unit(random));
        identity.sum.push_back(unit(random));
        plan.weight.push_back(1 + random.below(5));
    }
    identity.weight = plan.weight;
    const PairedDifference once = paired_difference(plan, identity, {.seed = 7});
    EXPECT_EQ(once, paired_difference(plan, identity, {.seed = 7}));
    const PairedDifference other = paired_difference(plan, identity, {.seed = 8});
    EXPECT_NE(once.low, other.low);
    EXPECT_EQ(once.p, other.p);
}

TEST(PairedDifference, TurnsItsSignWithThePlans) {
    const ItemScores a = questions({0, 1, 1, 0, 1, 0.5, 0.25, 1});
    const ItemScores b = questions({1, 0, 0, 0, 0, 0.75, 0.5, 0.5});
    const PairedDifference ab = paired_difference(a, b);
    const PairedDifference ba = paired_difference(b, a);
    EXPECT_DOUBLE_EQ(ab.mean, -ba.mean);
    EXPECT_DOUBLE_EQ(ab.low, -ba.high);
    EXPECT_DOUBLE_EQ(ab.high, -ba.low);
    EXPECT_DOUBLE_EQ(ab.p, ba.p);
}

TEST(PairedDifferenceProperty, FindsNothingAboutAsOftenAsItShould) {
    int small_p = 0;
    int outside = 0;
    const int n_seeds = 400;
    for (uint64_t seed = 0; seed < n_seeds; ++seed) {
        SplitMix64 random(seed);
        ItemScores plan = questions({});
        for (int i = 0; i < 60; ++i) {
            plan.sum.push_back(unit(random));
            plan.weight.push_back(1.0);
        }
        ItemScores identity = plan;
        for (double& score : identity.sum) score = unit(random);
        const PairedDifference d =
            paired_difference(plan, identity, {.seed = seed, .n_resamples = 400});
        if (d.p <= 0.05) ++small_p;
        if (d.low > 0 || d.high < 0) ++outside;
        EXPECT_LE(d.low, d.mean) << "seed " << seed;
        EXPECT_GE(d.high, d.mean) << "seed " << seed;
    }
    EXPECT_GE(small_p, n_seeds / 50);
    EXPECT_LE(small_p, n_seeds / 10);
    EXPECT_GE(outside, n_seeds / 50);
    EXPECT_LE(outside, n_seeds / 10);
}

TEST(PairedDifference, RefusesOtherItems) {
    EXPECT_EQ(message_of([] {
                  paired_difference(questions({1, 2}), questions({1}));
              }),
              "the plan's 2 items and the identity plan's 1 have other weights, so they are not "
              "the same items");
    const ItemScores heavy{.sum = {1}, .weight = {2}};
    EXPECT_THAT(message_of([&] { paired_difference(questions({1}), heavy); }),
                HasSubstr("not the same items"));
    EXPECT_THAT(message_of([] { paired_difference(questions({}), questions({})); }),
                HasSubstr("no items"));
    EXPECT_THAT(message_of([] { paired_difference(questions({1}), questions({not_a_number})); }),
                HasSubstr("item 0 is nan"));
}

TEST(PairedDifference, RefusesAnIntervalThatIsNone) {
    const ItemScores items = questions({1, 2});
    EXPECT_EQ(message_of([&] { paired_difference(items, items, {.level = 1.0}); }),
              "an interval of level 1 from 2000 resamples; it needs 0 < level < 1 and some "
              "resamples");
    EXPECT_THROW(paired_difference(items, items, {.n_resamples = 0}), Error);
    EXPECT_THROW(paired_difference(items, items, {.level = not_a_number}), Error);
}

TEST(Holm, AdjustsStepByStep) {
    // Sorted 0.005, 0.01, 0.03, 0.04: times 4, 3, 2, 1, and never falling
    const std::vector<double> p{0.01, 0.04, 0.03, 0.005};
    EXPECT_THAT(holm_adjusted(p), ElementsAre(DoubleNear(0.03, 1e-15), DoubleNear(0.06, 1e-15),
                                              DoubleNear(0.06, 1e-15), DoubleNear(0.02, 1e-15)));
    EXPECT_THAT(holm_survivors(p, 0.05), ElementsAre(true, false, false, true));
}

TEST(Holm, StopsAtTheFirstThatFails) {
    // The second fails at 0.03 * 2, so the third does too, although 0.045 <= 0.05.
    const std::vector<double> p{0.001, 0.03, 0.045};
    EXPECT_THAT(holm_survivors(p, 0.05), ElementsAre(true, false, false));
}

TEST(Holm, EndsAtOne) {
    const std::vector<double> p{0.9, 0.6, 0.7};
    EXPECT_THAT(holm_adjusted(p), ElementsAre(1.0, 1.0, 1.0));
}

TEST(Holm, LeavesOneAloneAndNoneEmpty) {
    EXPECT_THAT(holm_adjusted(std::vector<double>{0.04}), ElementsAre(0.04));
    EXPECT_THAT(holm_survivors(std::vector<double>{0.05}, 0.05), ElementsAre(true));
    EXPECT_THAT(holm_adjusted(std::vector<double>{}), IsEmpty());
}

TEST(Holm, RefusesWhatIsNoProbability) {
    EXPECT_EQ(message_of([] {
                  holm_adjusted(std::vector<double>{0.1, not_a_number});
              }),
              "p value 1 is nan; it is in [0, 1]");
    EXPECT_EQ(message_of([] { holm_adjusted(std::vector<double>{1.5}); }),
              "p value 0 is 1.5; it is in [0, 1]");
    EXPECT_EQ(message_of([] { holm_survivors(std::vector<double>{0.5}, 0.0); }),
              "alpha is 0; it is in (0, 1)");
}

TEST(HolmProperty, IsTheDefinitionAndBeatsBonferroni) {
    for (uint64_t seed = 0; seed < 500; ++seed) {
        SCOPED_TRACE(seed);
        SplitMix64 random(seed);
        std::vector<double> p(1 + random.below(30));
        for (double& value : p) value = std::pow(unit(random), 4);
        const double alpha = 0.05;
        const std::vector<bool> survivors = holm_survivors(p, alpha);
        std::vector<double> sorted = p;
        std::ranges::sort(sorted);
        size_t rejected = 0;  // the article: go on while p_(k) <= alpha / (m - k + 1)
        while (rejected < p.size() &&
               sorted[rejected] * static_cast<double>(p.size() - rejected) <= alpha) {
            ++rejected;
        }
        EXPECT_EQ(static_cast<size_t>(std::ranges::count(survivors, true)), rejected);
        for (size_t i = 0; i < p.size(); ++i) {
            EXPECT_TRUE(survivors[i] || p[i] > alpha / static_cast<double>(p.size()));
        }
    }
}

std::vector<std::string> numbered(size_t n) {
    std::vector<std::string> ids;
    for (size_t i = 0; i < n; ++i) ids.push_back("item-" + std::to_string(i));
    return ids;
}

TEST(SplitItems, PutsEveryItemInOnePart) {
    const std::vector<std::string> ids = numbered(4000);
    const Split split = split_items(ids, 0.25, 1);
    EXPECT_EQ(split.selection.size() + split.validation.size(), ids.size());
    EXPECT_NEAR(static_cast<double>(split.validation.size()), 1000, 4 * std::sqrt(750));
    EXPECT_TRUE(std::ranges::is_sorted(split.selection));
    EXPECT_TRUE(std::ranges::is_sorted(split.validation));
}

TEST(SplitItems, LeavesItemsWhereTheyAreWhenOthersAreAdded) {
    const Split few = split_items(numbered(100), 0.5, 9);
    Split many = split_items(numbered(1000), 0.5, 9);
    std::erase_if(many.selection, [](size_t i) { return i >= 100; });
    std::erase_if(many.validation, [](size_t i) { return i >= 100; });
    EXPECT_EQ(few, many);
}

TEST(SplitItems, OnlyAddsToAPartThatGrows) {
    for (const std::string& id : numbered(500)) {
        EXPECT_TRUE(in_validation(id, 0.6, 4) || !in_validation(id, 0.2, 4)) << id;
    }
}

TEST(SplitItems, DependsOnTheSeed) {
    EXPECT_NE(split_items(numbered(100), 0.5, 1), split_items(numbered(100), 0.5, 2));
}

TEST(SplitItems, IsTheSameOnEveryPlatform) {  // worked out apart from this code
    std::string parts;
    for (const std::string& id : numbered(16)) parts += in_validation(id, 0.5, 1) ? 'v' : 's';
    EXPECT_EQ(parts, "vsvvvssvvsvsssss");
}

TEST(SplitItems, MayLeaveAPartEmpty) {
    EXPECT_THAT(split_items(numbered(5), 0.0, 1).validation, IsEmpty());
    EXPECT_THAT(split_items(numbered(5), 1.0, 1).selection, IsEmpty());
    EXPECT_EQ(split_items(std::vector<std::string>{}, 0.5, 1), Split{});
    EXPECT_EQ(message_of([] { split_items(numbered(5), 1.5, 1); }),
              "the fraction of items for validation is 1.5; it is in [0, 1]");
    EXPECT_THROW(in_validation("a", not_a_number, 1), Error);
}

ItemScores each(std::vector<double> values) {
    std::vector<double> weights(values.size(), 1.0);
    return {.sum = std::move(values), .weight = std::move(weights)};
}

TEST(ExpectedMean, IsTheMeanWhereAllWasSeen) {
    EXPECT_DOUBLE_EQ(expected_mean(each({1, 2, 6}), each({0, 0, 0})), 3.0);
}

TEST(ExpectedMean, AddsTheDifferenceToTheIdentitysMeanWhereFewItemsTellNoSlope) {
    // The identity's mean is 4, on the seen items 2; the plan is 0.5 above it there.
    EXPECT_DOUBLE_EQ(expected_mean(each({1.5, 3.5}), each({1, 3, 5, 7})), 4.5);
}

TEST(ExpectedMean, FollowsADifferenceThatGrowsWithTheIdentitysValue) {
    // The plan is worse by half of the identity's value. On the seen items the mean is 2.5, on all
    // 4.5; the slope 0.5 counts 1 / 1.1 times.
    const ItemScores identity = each({1, 2, 3, 4, 5, 6, 7, 8});
    EXPECT_NEAR(expected_mean(each({1.5, 3, 4.5, 6}), identity), 3.75 + 2.0 * (1 + 0.5 / 1.1),
                1e-12);
    // An identity that is the same everywhere says nothing of what was not seen.
    EXPECT_DOUBLE_EQ(expected_mean(each({1, 2, 3, 4}), each({1, 1, 1, 1, 1})), 2.5);
}

TEST(Places, AreSharedWithinOneStandardError) {
    const std::vector<Score> scores{{0.50, 0.02}, {0.49, 0.02}, {0.475, 0.02}, {0.40, 0.02}};
    EXPECT_THAT(places(scores, {.name = "probe", .higher_is_better = true}),
                ElementsAre(1, 1, 2, 4));
}

TEST(Places, TurnAroundWhereLessIsBetter) {
    const std::vector<Score> scores{{3.0, 0.1}, {2.0, 0.1}, {2.05, 0.1}};
    EXPECT_THAT(places(scores, {.name = "nll", .higher_is_better = false}), ElementsAre(3, 1, 1));
}

TEST(Places, AreAllFirstWhenErrorsAreInfiniteAndEqualNumbersTie) {
    const Measure measure{.name = "probe", .higher_is_better = true};
    EXPECT_THAT(places(std::vector<Score>{{1, infinity}, {0, infinity}}, measure),
                ElementsAre(1, 1));
    EXPECT_THAT(places(std::vector<Score>{{1, 0}, {1, 0}, {0, 0}}, measure), ElementsAre(1, 1, 3));
    EXPECT_THAT(places(std::vector<Score>{}, measure), IsEmpty());
}

TEST(Places, RefuseWhatIsNoNumber) {
    EXPECT_EQ(message_of([] {
                  places(std::vector<Score>{{1, 0}, {not_a_number, 0}}, {});
              }),
              "score 1 is nan +/- 0; a place needs a number and an error >= 0");
    EXPECT_THROW(places(std::vector<Score>{{1, not_a_number}}, {}), Error);
}

}  // namespace
}  // namespace pleat
