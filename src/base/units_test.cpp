#include "base/units.h"

#include <gtest/gtest.h>

#include "base/checked.h"

namespace pleat {
namespace {

TEST(Units, BytesHaveThreeSignificantDigitsFromKibOn) {
    EXPECT_EQ(format_bytes(0), "0 B");
    EXPECT_EQ(format_bytes(1023), "1023 B");
    EXPECT_EQ(format_bytes(1536), "1.50 KiB");
    EXPECT_EQ(format_bytes(12'900'000), "12.3 MiB");
    EXPECT_EQ(format_bytes(uint64_t{5} << 30), "5.00 GiB");
}

TEST(Units, CountsUseDecimalPrefixes) {
    EXPECT_EQ(format_count(950), "950");
    EXPECT_EQ(format_count(12'345), "12.3 k");
    EXPECT_EQ(format_count(2'000'000'000), "2.00 G");
}

TEST(Checked, OverflowIsNoValue) {
    EXPECT_EQ(checked_add(UINT64_MAX, 1), std::nullopt);
    EXPECT_EQ(checked_mul(uint64_t{1} << 32, uint64_t{1} << 32), std::nullopt);
    EXPECT_EQ(checked_mul(3, 5), 15U);
    EXPECT_EQ(round_up(257, 256), 512U);
    EXPECT_EQ(round_up(256, 256), 256U);
}

}  // namespace
}  // namespace pleat
