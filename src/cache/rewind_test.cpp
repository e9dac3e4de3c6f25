#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "cache/cells.h"

namespace pleat {
namespace {

/// The next `n` tokens of sequence 0; the cells they were put into.
std::vector<uint32_t> add(Cells& cells, uint32_t n) {
    const auto found = cells.find(n);
    if (!found) return {};
    std::vector<int32_t> positions(n);
    std::iota(positions.begin(), positions.end(), cells.max_position(0) + 1);
    cells.set(*found, positions, std::vector<int32_t>(n, 0));
    return *found;
}

/// Adds `lengths` one after another, rewinds, and adds `more`: are all as if the tokens beyond
/// `length` had never been there?
void expect_as_before(uint32_t n_cells, uint32_t n_swa, int32_t total, int32_t length) {
    Cells used(n_cells, n_swa);
    for (int32_t i = 0; i < total; ++i) add(used, 1);
    ASSERT_TRUE(used.can_rewind(length));
    used.rewind(0, length);
    Cells fresh(n_cells, n_swa);
    for (int32_t i = 0; i < length; ++i) add(fresh, 1);
    for (const uint32_t n : {3U, 1U, 2U, 1U}) {
        EXPECT_EQ(add(used, n), add(fresh, n));
        EXPECT_EQ(used.max_position(0), fresh.max_position(0));
        EXPECT_EQ(used.used_end(), fresh.used_end());
        EXPECT_EQ(used.n_free(), fresh.n_free());
        const int32_t next = fresh.max_position(0) + 1;
        for (uint32_t cell = 0; cell < n_cells; ++cell) {
            EXPECT_EQ(used.visible(cell, 0, next), fresh.visible(cell, 0, next)) << cell;
        }
    }
}

TEST(RewoundCells, OfAFullCacheAreWhatTheyWere) {
    expect_as_before(32, 0, 20, 11);
    expect_as_before(32, 0, 20, 20);
    expect_as_before(32, 0, 20, 0);
}

TEST(RewoundCells, OfAWindowCacheAreWhatTheyWereAlsoOnceTheyWentRound) {
    expect_as_before(16, 4, 10, 5);
    expect_as_before(16, 4, 19, 17);  // both went round
    expect_as_before(16, 4, 19, 15);  // only the longer one did
    expect_as_before(16, 4, 19, 6);   // as far back as cells reach
    expect_as_before(16, 4, 40, 27);
    expect_as_before(16, 4, 40, 0);
}

TEST(RewoundCells, ReachNoFurtherThanWhatWasNotOverwritten) {
    Cells cells(16, 4);
    for (int32_t i = 0; i < 40; ++i) add(cells, 1);
    // Positions 24 to 39 are there; a token at 27 looks back to 24.
    EXPECT_TRUE(cells.can_rewind(27));
    EXPECT_FALSE(cells.can_rewind(26));
    cells.rewind(0, 30);
    EXPECT_TRUE(cells.can_rewind(27));
    EXPECT_FALSE(cells.can_rewind(26));  // what they held was overwritten by 39, back then
    cells.rewind(0, 0);
    add(cells, 10);
    EXPECT_TRUE(cells.can_rewind(1));
}

}  // namespace
}  // namespace pleat
