#include "cache/cells.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace pleat {
namespace {

using testing::ElementsAre;
using testing::Eq;

/// Puts the next `n` tokens of a sequence into the cells that are found for them.
std::vector<uint32_t> add(Cells& cells, int32_t sequence, uint32_t n) {
    const auto found = cells.find(n);
    if (!found) return {};
    std::vector<int32_t> positions(n);
    std::iota(positions.begin(), positions.end(), cells.max_position(sequence) + 1);
    cells.set(*found, positions, std::vector<int32_t>(n, sequence));
    return *found;
}

TEST(Cells, AreGivenOutInOrder) {
    Cells cells(8, 0);
    EXPECT_THAT(add(cells, 0, 3), ElementsAre(0U, 1U, 2U));
    EXPECT_THAT(add(cells, 1, 2), ElementsAre(3U, 4U));
    EXPECT_EQ(cells.used_end(), 5U);
    EXPECT_EQ(cells.n_free(), 3U);
    EXPECT_EQ(cells.max_position(0), 2);
    EXPECT_EQ(cells.max_position(7), -1);
}

TEST(Cells, GiveNothingWhenThereAreNotEnough) {
    Cells cells(4, 0);
    add(cells, 0, 3);
    EXPECT_THAT(cells.find(2), Eq(std::nullopt));
    EXPECT_THAT(cells.find(5), Eq(std::nullopt));
    EXPECT_THAT(add(cells, 0, 1), ElementsAre(3U));
}

TEST(Cells, AreReusedFromTheFirstOneThatWasFreed) {
    Cells cells(8, 0);
    add(cells, 0, 6);
    cells.remove(0, 2, 4);
    EXPECT_EQ(cells.used_end(), 6U);
    EXPECT_EQ(cells.max_position(0), 5);
    EXPECT_THAT(cells.find(3), testing::Optional(ElementsAre(2U, 3U, 6U)));
    cells.remove(0, 4, INT32_MAX);
    EXPECT_EQ(cells.max_position(0), 1);
    EXPECT_EQ(cells.used_end(), 2U);
}

TEST(Cells, AreVisibleToTheirSequenceUpToTheQuerysPosition) {
    Cells cells(8, 0);
    add(cells, 3, 4);
    EXPECT_TRUE(cells.visible(2, 3, 2));
    EXPECT_FALSE(cells.visible(3, 3, 2));
    EXPECT_FALSE(cells.visible(2, 0, 2));
    EXPECT_FALSE(cells.visible(5, 3, 9));
}

TEST(Cells, SharedByTwoSequencesStayUntilBothLetGo) {
    Cells cells(8, 0);
    add(cells, 0, 4);
    cells.share(0, 1, 0, 3);
    EXPECT_EQ(cells.max_position(1), 2);
    cells.remove(0, 0, INT32_MAX);
    EXPECT_EQ(cells.n_free(), 5U);
    EXPECT_TRUE(cells.visible(1, 1, 2));
    EXPECT_FALSE(cells.visible(1, 0, 2));
    cells.remove(1, 0, INT32_MAX);
    EXPECT_EQ(cells.n_free(), 8U);
}

TEST(WindowCells, CountTheQueryItself) {
    Cells cells(8, 3);
    add(cells, 0, 5);
    EXPECT_FALSE(cells.visible(1, 0, 4));
    EXPECT_TRUE(cells.visible(2, 0, 4));
}

TEST(WindowCells, AreReusedOnceTheyHaveLeftTheWindow) {
    Cells cells(4, 3);
    add(cells, 0, 4);
    // Position 4 sees 2, 3, 4: cells 0 and 1 are free to be taken.
    EXPECT_THAT(add(cells, 0, 1), ElementsAre(0U));
    EXPECT_THAT(add(cells, 0, 1), ElementsAre(1U));
    EXPECT_THAT(cells.find(4), Eq(std::nullopt));
}

TEST(Cells, ForgetEverythingWhenCleared) {
    Cells cells(4, 0);
    add(cells, 2, 4);
    cells.clear();
    EXPECT_EQ(cells.max_position(2), -1);
    EXPECT_THAT(add(cells, 0, 2), ElementsAre(0U, 1U));
}

}  // namespace
}  // namespace pleat
