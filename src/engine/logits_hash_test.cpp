#include "engine/logits_hash.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdint>

namespace pleat {
namespace {

// Two of the published test vectors (Fowler, Noll and Vo): "", and "foob" as the float that has
// these bytes in memory.
TEST(LogitsHash, IsFnv1aOverTheBytes) {
    EXPECT_EQ(logits_hash({}), "cbf29ce484222325");
    constexpr std::array foob{std::bit_cast<float>(uint32_t{0x626f6f66})};
    EXPECT_EQ(logits_hash(foob), "dd120e790c2512af");
}

TEST(LogitsHash, TellsZeroFromItsNegative) {
    EXPECT_NE(logits_hash(std::array{0.0F}), logits_hash(std::array{-0.0F}));
}

}  // namespace
}  // namespace pleat
