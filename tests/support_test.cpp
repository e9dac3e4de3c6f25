#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/bits.h"
#include "support/random_model.h"
#include "support/random_tokens.h"
#include "support/stock.h"

namespace pleat::test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr size_t n_prefill = 70;  // past the 64 query rows where attention changes its kernel

Logits run(const TempFile& file, const RandomModel& model, const StockSettings& settings = {}) {
    const auto tokens = random_tokens(7, n_prefill + 4, model.n_vocab);
    return stock_logits(file.path(), tokens, n_prefill, settings);
}

void expect_sound(const Logits& logits) {
    EXPECT_EQ(degeneracy(logits), std::nullopt);
    EXPECT_EQ(logits.rows(), n_prefill + 4);
    EXPECT_GT(spread(logits), 1.0);
    EXPECT_LT(spread(logits), 4.0);
}

class RandomModels : public testing::TestWithParam<RandomModel> {};

TEST_P(RandomModels, GiveStockSoundLogitsThatComeOutTheSameTwice) {
    const TempFile& file = make_model(GetParam());
    const Logits logits = run(file, GetParam());
    expect_sound(logits);
    EXPECT_THAT(run(file, GetParam()), BitIdenticalTo(logits));
    // Stock names what it found in the file and did not ask for.
    EXPECT_THAT(stock_log(), Not(HasSubstr("unused tensor")));
}

const RandomModel odd_sizes{
    .n_layer = 3, .n_embd = 160, .n_head = 5, .n_head_kv = 1, .n_ff = 352, .n_vocab = 509};

INSTANTIATE_TEST_SUITE_P(
    Variants, RandomModels,
    testing::Values(RandomModel{}, RandomModel{.seed = 2}, RandomModel{.tied = true},
                    RandomModel{.biases = true}, RandomModel{.scales = true},
                    RandomModel{.biases = true, .scales = true}, RandomModel{.fused_qkv = true},
                    RandomModel{.biases = true, .scales = true, .fused_qkv = true},
                    RandomModel{.rope_freqs = true}, RandomModel{.head_dim = 64}, odd_sizes,
                    RandomModel{.rope_scaling = "none"}, RandomModel{.rope_scaling = "linear"},
                    RandomModel{.rope_scaling = "yarn"}, RandomModel{.rope_scaling = "longrope"},
                    RandomModel{.n_expert = 4, .n_expert_used = 2},
                    RandomModel{.n_expert = 4, .n_expert_used = 1, .scales = true},
                    RandomModel{.n_expert = 4, .n_expert_used = 2, .biases = true},
                    RandomModel{.tokenizer = true}, RandomModel{.alignment = 256},
                    RandomModel{.n_vocab = 2000, .tokenizer = true}));

class Types : public testing::TestWithParam<ggml_type> {};

TEST_P(Types, OfWeightsGiveStockSoundLogitsThatComeOutTheSameTwice) {
    const RandomModel model{.n_layer = 2};
    const TempFile& file = make_model(model, GetParam());
    const Logits logits = run(file, model);
    expect_sound(logits);
    EXPECT_THAT(run(file, model), BitIdenticalTo(logits));
    EXPECT_THAT(stock_log(), HasSubstr(std::string(ggml_type_name(GetParam())) + ":"));
}

INSTANTIATE_TEST_SUITE_P(
    Pure, Types,
    testing::Values(GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q4_0, GGML_TYPE_Q4_1,
                    GGML_TYPE_Q5_0, GGML_TYPE_Q5_1, GGML_TYPE_Q8_0, GGML_TYPE_Q2_K, GGML_TYPE_Q3_K,
                    GGML_TYPE_Q4_K, GGML_TYPE_Q5_K, GGML_TYPE_Q6_K, GGML_TYPE_IQ2_XXS,
                    GGML_TYPE_IQ2_XS, GGML_TYPE_IQ2_S, GGML_TYPE_IQ3_XXS, GGML_TYPE_IQ3_S,
                    GGML_TYPE_IQ1_S, GGML_TYPE_IQ1_M, GGML_TYPE_IQ4_NL, GGML_TYPE_IQ4_XS,
                    GGML_TYPE_TQ1_0, GGML_TYPE_TQ2_0, GGML_TYPE_MXFP4, GGML_TYPE_NVFP4,
                    GGML_TYPE_Q1_0, GGML_TYPE_Q2_0),
    [](const auto& type) { return std::string(ggml_type_name(type.param)); });

}  // namespace
}  // namespace pleat::test
