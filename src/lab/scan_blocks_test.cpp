#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lab/scan.h"

namespace pleat {
namespace {

using testing::ElementsAre;

TEST(ScanRange, LeavesBoundaryLayersOut) {
    const ScanRange range = scan_range(64, false);
    EXPECT_EQ(range.begin, 8);
    EXPECT_EQ(range.end, 56);
    EXPECT_FALSE(range.whole);
    EXPECT_EQ(scan_range(64, true).begin, 0);
    EXPECT_EQ(scan_range(64, true).end, 64);
}

TEST(ScanRange, TakesASmallModelWhole) {
    // 9 layers less 3 at both ends leave 3: no choice.
    EXPECT_TRUE(scan_range(9, false).whole);
    EXPECT_EQ(scan_range(9, false).end, 9);
    EXPECT_FALSE(scan_range(10, false).whole);
}

TEST(ScanBlocks, AreAllOfTheRangeUpToTheirGreatestLength) {
    EXPECT_THAT(scan_blocks({.begin = 3, .end = 6}, 2, 1),
                ElementsAre(ScanBlock{3, 4}, ScanBlock{3, 5}, ScanBlock{4, 5}, ScanBlock{4, 6},
                            ScanBlock{5, 6}));
    // By hand: 18 layers, lengths 1 to 8: 18 + 17 + ... + 11.
    EXPECT_EQ(scan_blocks({.begin = 3, .end = 21}, 8, 1).size(), 116U);
}

TEST(ScanBlocks, OfACoarsePassBeginAndEndOnTheStride) {
    EXPECT_THAT(scan_blocks({.begin = 3, .end = 9}, 4, 2),
                ElementsAre(ScanBlock{3, 5}, ScanBlock{3, 7}, ScanBlock{5, 7}, ScanBlock{5, 9},
                            ScanBlock{7, 9}));
}

TEST(ScanBlocks, AroundABlockBothEndsMoveByLessThanTheStride) {
    EXPECT_THAT(blocks_around({5, 7}, {.begin = 3, .end = 9}, 8, 2),
                ElementsAre(ScanBlock{4, 6}, ScanBlock{4, 7}, ScanBlock{4, 8}, ScanBlock{5, 6},
                            ScanBlock{5, 7}, ScanBlock{5, 8}, ScanBlock{6, 7}, ScanBlock{6, 8}));
    for (const ScanBlock& block : blocks_around({3, 9}, {.begin = 3, .end = 9}, 5, 3)) {
        EXPECT_GE(block.begin, 3);
        EXPECT_LE(block.end, 9);
        EXPECT_LE(block.end - block.begin, 5);
    }
}

/// What rungs cost, the identity plan on everything included, as a fraction of all plans on all
/// sequences.
double work_of(const std::vector<Rung>& rungs, size_t n_sequences, size_t n_plans) {
    double work = static_cast<double>(n_sequences);
    auto alive = static_cast<double>(n_plans);
    size_t seen = 0;
    for (const Rung& rung : rungs) {
        work += alive * static_cast<double>(rung.n_sequences - seen);
        seen = rung.n_sequences;
        alive = std::ceil(alive * rung.keep - 1e-9);
    }
    return work / static_cast<double>(n_sequences * n_plans);
}

TEST(HalvingRungs, OfTheWholeBudgetAreOne) {
    EXPECT_THAT(halving_rungs(27, 50, 1.0), ElementsAre(Rung{.n_sequences = 27}));
}

TEST(HalvingRungs, UseTheBudgetAndNoMore) {
    for (const size_t n_sequences : {24U, 96U, 1000U}) {
        for (const size_t n_plans : {20U, 52U, 116U, 700U}) {
            for (const double budget : {0.15, 0.2, 0.4, 0.8}) {
                SCOPED_TRACE(testing::Message() << n_sequences << " sequences, " << n_plans
                                                << " plans, budget " << budget);
                const auto rungs = halving_rungs(n_sequences, n_plans, budget);
                const double work = work_of(rungs, n_sequences, n_plans);
                EXPECT_LE(work, budget * 1.01);
                EXPECT_GE(work, budget * 0.8);
                for (size_t r = 1; r < rungs.size(); ++r) {
                    EXPECT_GT(rungs[r].n_sequences, rungs[r - 1].n_sequences);
                    EXPECT_LT(rungs[r - 1].keep, 1.0);
                }
                EXPECT_LE(rungs.back().n_sequences, n_sequences);
                EXPECT_EQ(rungs.back().keep, 1.0);
            }
        }
    }
}

TEST(HalvingRungs, SeeMoreItemsWhileAboutSevenInTenGoOn) {
    // 52 plans, 37, 26, 19 and 14.
    const auto rungs = halving_rungs(960, 52, 0.2);
    ASSERT_EQ(rungs.size(), 5U);
    EXPECT_NEAR(rungs[0].keep, 37.0 / 52.0, 1e-12);
    EXPECT_NEAR(rungs[3].keep, 14.0 / 19.0, 1e-12);
    for (size_t r = 1; r < rungs.size(); ++r) {
        const double growth = static_cast<double>(rungs[r].n_sequences) /
                              static_cast<double>(rungs[r - 1].n_sequences);
        EXPECT_NEAR(growth, 1.75, 0.06);
    }
}

TEST(HalvingRungs, EndWithAllItemsWhereTheBudgetAllowsIt) {
    EXPECT_EQ(halving_rungs(96, 116, 0.6).back().n_sequences, 96U);
    EXPECT_LT(halving_rungs(96, 52, 0.2).back().n_sequences, 60U);
}

TEST(HalvingRungs, GoNoFurtherThanOneItem) {
    const auto rungs = halving_rungs(4, 50, 0.001);
    EXPECT_EQ(rungs.front().n_sequences, 1U);
    EXPECT_LE(rungs.back().n_sequences, 4U);
}

}  // namespace
}  // namespace pleat
