#include "lab/perplexity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace pleat {
namespace {

TEST(NegativeLogLikelihood, IsMinusTheLogOfTheSoftmax) {
    const std::vector<float> logits{1.0F, 2.0F, 3.0F};
    const double sum = std::exp(1.0) + std::exp(2.0) + std::exp(3.0);
    EXPECT_NEAR(negative_log_likelihood(logits, 0), -std::log(std::exp(1.0) / sum), 1e-6);
    EXPECT_NEAR(negative_log_likelihood(logits, 2), -std::log(std::exp(3.0) / sum), 1e-6);
}

TEST(NegativeLogLikelihood, DoesNotOverflowForLargeLogits) {
    const std::vector<float> logits{1000.0F, 1000.0F};
    EXPECT_NEAR(negative_log_likelihood(logits, 1), std::log(2.0), 1e-6);
}

TEST(PerplexitySequences, FillTheBatchWithWholeChunks) {
    EXPECT_EQ(perplexity_sequences(512, 2048), 4U);
    EXPECT_EQ(perplexity_sequences(4096, 2048), 1U);
    EXPECT_EQ(perplexity_sequences(500, 2048), 4U);
    EXPECT_EQ(perplexity_sequences(1, 2048), 256U);
}

}  // namespace
}  // namespace pleat
