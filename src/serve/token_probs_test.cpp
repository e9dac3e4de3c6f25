#include "serve/token_probs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace pleat {
namespace {

// Of e^0 = 1, e^ln3 = 3, e^ln4 = 4: 1/8, 3/8, 4/8.
const std::vector<float> logits{0.0F, std::log(3.0F), std::log(4.0F)};

TEST(TokenProbs, AreOfTheSoftmaxOverAllTokens) {
    const TokenOutput output = token_output(1, logits, 0);
    EXPECT_EQ(output.drawn.token, 1);
    EXPECT_NEAR(output.drawn.logprob, std::log(3.0 / 8.0), 1e-6);
    EXPECT_TRUE(output.top.empty());
}

TEST(TokenProbs, ListTheLikeliestFirst) {
    const TokenOutput output = token_output(0, logits, 2);
    ASSERT_EQ(output.top.size(), 2U);
    EXPECT_EQ(output.top[0].token, 2);
    EXPECT_NEAR(output.top[0].logprob, std::log(0.5), 1e-6);
    EXPECT_EQ(output.top[1].token, 1);
    EXPECT_NEAR(output.top[1].logprob, std::log(3.0 / 8.0), 1e-6);
}

TEST(TokenProbs, OfEqualTokensTakeTheLowerIds) {
    const TokenOutput output = token_output(0, std::vector<float>{1, 7, 7, 2, 7, 7}, 3);
    ASSERT_EQ(output.top.size(), 3U);
    EXPECT_EQ(output.top[0].token, 1);
    EXPECT_EQ(output.top[1].token, 2);
    EXPECT_EQ(output.top[2].token, 4);
}

TEST(TokenProbs, ListNoMoreTokensThanThereAre) {
    EXPECT_EQ(token_output(0, logits, 10).top.size(), 3U);
}

TEST(TokenProbs, TakeLogitsOfAnySize) {
    const float none = -std::numeric_limits<float>::infinity();
    const TokenOutput output = token_output(1, std::vector<float>{none, 1e19F, -1e19F}, 3);
    EXPECT_EQ(output.drawn.logprob, 0.0F);
    EXPECT_EQ(output.top[0].token, 1);
    EXPECT_EQ(output.top[2].logprob, none);
}

}  // namespace
}  // namespace pleat
