#include "serve/pooling.h"

#include <gtest/gtest.h>

#include <vector>

namespace pleat {
namespace {

using Rows = std::vector<std::vector<float>>;

TEST(Pooling, ChoosesRows) {
    const Rows rows{{1, 2}, {3, 4}, {5, 6}};
    EXPECT_EQ(pooled(rows, Pooling::none), rows);
    EXPECT_EQ(pooled(rows, Pooling::cls), (Rows{{1, 2}}));
    EXPECT_EQ(pooled(rows, Pooling::last), (Rows{{5, 6}}));
    EXPECT_EQ(pooled(Rows{{1, 2}}, Pooling::last), (Rows{{1, 2}}));
}

TEST(Pooling, NormalisesToLengthOne) {
    EXPECT_EQ(normalised(std::vector<float>{3, -4}), (std::vector<float>{0.6F, -0.8F}));
    EXPECT_EQ(normalised(std::vector<float>{0, 0}), (std::vector<float>{0, 0}));
}

}  // namespace
}  // namespace pleat
