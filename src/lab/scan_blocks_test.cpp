#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

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

TEST(HalvingRungs, KeepWithinTheBudget) {
    EXPECT_EQ(halving_rungs(27, 1.0).size(), 1U);
    // A third of the plans on all items, all of them on a third: 1/3 + 1/3 * 2/3 = 5/9.
    const auto two = halving_rungs(27, 0.6);
    ASSERT_EQ(two.size(), 2U);
    EXPECT_EQ(two[0].n_sequences, 9U);
    EXPECT_EQ(two[1].n_sequences, 27U);
    EXPECT_NEAR(work_of(two), 5.0 / 9.0, 1e-12);
    const auto three = halving_rungs(27, 0.3);
    ASSERT_EQ(three.size(), 3U);
    EXPECT_NEAR(work_of(three), 1.0 / 9.0 + 2.0 / 27.0 + 2.0 / 27.0, 1e-12);
}

TEST(HalvingRungs, TakeHalvesWhereTheseUseMoreOfTheBudget) {
    // Thirds would take 1/9 + 3 x 2/81 + ..., 0.11 in all.
    const auto rungs = halving_rungs(64, 0.2);
    ASSERT_EQ(rungs.size(), 5U);
    EXPECT_EQ(rungs[0], (Rung{.n_sequences = 4, .keep = 0.5}));
    EXPECT_NEAR(work_of(rungs), 1.0 / 16.0 + 4.0 / 32.0, 1e-12);
}

TEST(HalvingRungs, GoNoFurtherThanOneItem) {
    const auto rungs = halving_rungs(4, 0.001);
    EXPECT_EQ(rungs.front().n_sequences, 1U);
    EXPECT_EQ(rungs.back().n_sequences, 4U);
}

}  // namespace
}  // namespace pleat
