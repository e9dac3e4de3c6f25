#include "cli/numbers.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "plan/test_shapes.h"

namespace pleat::cli {
namespace {

TEST(ParseRatio, TakesPercentagesAndRatios) {
    EXPECT_DOUBLE_EQ(parse_ratio("60%", "--max-kv"), 0.6);
    EXPECT_DOUBLE_EQ(parse_ratio("60 %", "--max-kv"), 0.6);
    EXPECT_DOUBLE_EQ(parse_ratio("0.6", "--max-kv"), 0.6);
    EXPECT_DOUBLE_EQ(parse_ratio("115%", "--max-kv"), 1.15);
    EXPECT_DOUBLE_EQ(parse_ratio("0", "--max-kv"), 0.0);
    for (const char* const text : {"", "-5%", "60 % ", "60%%", "nan", "inf%", "6O%", "0,6"}) {
        EXPECT_EQ(error_of([&] { parse_ratio(text, "--max-kv"); }),
                  std::string("--max-kv ") + text +
                      ": expected a percentage or a ratio of 0 or more, as 60% or 0.6");
    }
}

TEST(DifferenceText, DoesNotPrintInfinities) {
    constexpr double inf = std::numeric_limits<double>::infinity();
    EXPECT_EQ(decimals(0.5), "0.5000");
    EXPECT_EQ(decimals(inf), "n/a");
    EXPECT_EQ(difference_text(0.5, 0.25, 1), "+0.5000 [+0.2500, +1.0000]");
    EXPECT_EQ(difference_text(0.5, -inf, inf), "+0.5000 [n/a]");
}

}  // namespace
}  // namespace pleat::cli
