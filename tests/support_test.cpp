#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "support/bits.h"
#include "support/random_model.h"
#include "support/random_tokens.h"
#include "support/stock.h"
#include "support/stock_tools.h"

namespace pleat::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

// ---- the matcher ----

std::string why_not(const Logits& actual, const Logits& expected) {
    testing::StringMatchResultListener listener;
    EXPECT_FALSE(testing::ExplainMatchResult(BitIdenticalTo(expected), actual, &listener));
    return listener.str();
}

const Logits three_rows{.n_vocab = 2, .values = {1.0F, 2.0F, 0.0F, -3.0F, 5.0F, 4.0F}};

Logits with(size_t index, float value) {
    Logits changed = three_rows;
    changed.values[index] = value;
    return changed;
}

TEST(BitIdentical, IsWhatHasTheSameBits) { EXPECT_THAT(three_rows, BitIdenticalTo(three_rows)); }

TEST(BitIdentical, IsNotWhatIsOneUlpAway) {
    const Logits near = with(3, std::nextafter(-3.0F, 0.0F));
    EXPECT_EQ(why_not(near, three_rows),
              "1 of 6 values differ; the first in row 1 of 3, token 1: 0xc03fffff (-2.99999976), "
              "expected 0xc0400000 (-3); largest difference 2.38e-07");
}

TEST(BitIdentical, TellsZeroFromMinusZero) {
    EXPECT_THAT(why_not(with(2, -0.0F), three_rows),
                HasSubstr("row 1 of 3, token 0: 0x80000000 (-0), expected 0x00000000 (0)"));
}

TEST(BitIdentical, IsNotWhatHasAnotherShape) {
    const Logits wide{.n_vocab = 3, .values = three_rows.values};
    EXPECT_EQ(why_not(wide, three_rows),
              "the shape is [2 rows][3] (6 values), expected [3 rows][2] (6)");
}

TEST(BitIdentical, IsNotWhatIsDegenerateOnBothSides) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(bit_difference(with(4, nan), with(4, nan)), std::nullopt);
    EXPECT_EQ(why_not(with(4, nan), with(4, nan)), "both are degenerate: row 2, token 0 is nan");
    EXPECT_EQ(why_not(with(1, 1.0F), with(1, 1.0F)),
              "both are degenerate: all values of row 0 are 1");
    EXPECT_EQ(why_not({}, {}), "both are degenerate: there are no rows");
}

TEST(BitIdentical, CountsANanAsTheLargestDifference) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    EXPECT_THAT(why_not(with(4, nan), three_rows), HasSubstr("largest difference nan"));
}

// ---- random models under stock ----

constexpr size_t n_prefill = 70;  // past the 64 query rows where attention changes its kernel
constexpr size_t n_steps = 4;

Logits run(const TempFile& file, const RandomModel& model, const StockSettings& settings = {}) {
    const auto tokens = random_tokens(7, n_prefill + n_steps, model.n_vocab);
    return stock_logits(file.path(), tokens, n_prefill, settings);
}

void expect_sound(const Logits& logits) {
    EXPECT_EQ(degeneracy(logits), std::nullopt);
    EXPECT_EQ(logits.rows(), n_prefill + n_steps);
    EXPECT_GT(spread(logits), 1.0);
    EXPECT_LT(spread(logits), 4.0);
}

class RandomModels : public testing::TestWithParam<RandomModel> {};

TEST_P(RandomModels, GiveSoundLogitsThatComeOutTheSameTwice) {
    const TempFile& file = make_model(GetParam());
    const Logits logits = run(file, GetParam());
    expect_sound(logits);
    EXPECT_THAT(run(file, GetParam()), BitIdenticalTo(logits));
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

TEST(RandomModelSettings, EachChangeWhatStockComputes) {
    const RandomModel plain;
    const Logits logits = run(make_model(plain), plain);
    for (const RandomModel& model :
         {RandomModel{.seed = 2}, RandomModel{.tied = true}, RandomModel{.biases = true},
          RandomModel{.scales = true}, RandomModel{.rope_freqs = true}, RandomModel{.head_dim = 64},
          RandomModel{.rope_scaling = "linear"}, RandomModel{.rope_scaling = "yarn"},
          RandomModel{.rope_scaling = "longrope"},
          RandomModel{.n_expert = 4, .n_expert_used = 2}}) {
        EXPECT_THAT(run(make_model(model), model), Not(BitIdenticalTo(logits))) << describe(model);
    }
    const RandomModel fused{.fused_qkv = true};
    const RandomModel fused_scales{.scales = true, .fused_qkv = true};
    EXPECT_THAT(run(make_model(fused_scales), fused_scales),
                Not(BitIdenticalTo(run(make_model(fused), fused))));
    // What is not about weights changes nothing.
    for (const RandomModel& model : {RandomModel{.tokenizer = true}, RandomModel{.alignment = 256},
                                     RandomModel{.rope_scaling = "none"}}) {
        EXPECT_THAT(run(make_model(model), model), BitIdenticalTo(logits)) << describe(model);
    }
}

TEST(RandomModelSettings, PickTheFactorsOfLongropeByTheLengthOfTheContext) {
    const RandomModel model{.rope_scaling = "longrope", .rope_orig_ctx = 512};
    const TempFile& file = make_model(model);
    EXPECT_THAT(run(file, model, {.n_ctx = 1024}),
                Not(BitIdenticalTo(run(file, model, {.n_ctx = 512}))));
}

TEST(RandomModelSettings, ThatContradictEachOtherAreRefused) {
    EXPECT_ANY_THROW(make_model({.n_head = 8, .n_head_kv = 3}));
    EXPECT_ANY_THROW(make_model({.n_expert = 2, .n_expert_used = 3}));
    EXPECT_ANY_THROW(make_model({.n_vocab = 100, .tokenizer = true}));
}

TEST(RandomModelFiles, AreMadeOnceAProcess) {
    EXPECT_EQ(&make_model(RandomModel{}), &make_model(RandomModel{}));
    EXPECT_NE(&make_model(RandomModel{}), &make_model(RandomModel{.seed = 2}));
}

TEST(RandomModelFiles, HoldTheTypesOfStocksMix) {
    const RandomModel model{.n_layer = 8};
    const TempFile& file = make_model(model, LLAMA_FTYPE_MOSTLY_Q4_K_M);
    expect_sound(run(file, model));
    EXPECT_THAT(stock_log(), AllOf(HasSubstr("q4_K:"), HasSubstr("q6_K:")));
}

TEST(RandomModelFiles, HoldATypeOfItsOwnForATensorThatIsNamed) {
    const RandomModel model{.types = {{"blk.1.ffn_down", GGML_TYPE_Q6_K}}};
    expect_sound(run(make_model(model, GGML_TYPE_Q4_0), model));
    EXPECT_THAT(stock_log(),
                AllOf(HasSubstr("q4_0:   29 tensors"), HasSubstr("q6_K:    1 tensors")));
}

TEST(RandomModelFiles, HoldRowsThatAreNoWholeBlocksInF16) {
    expect_sound(run(make_model(odd_sizes, GGML_TYPE_Q4_K), odd_sizes));
    EXPECT_THAT(stock_log(), AllOf(HasSubstr("f16:"), Not(HasSubstr("q4_K"))));
}

class Types : public testing::TestWithParam<ggml_type> {};

TEST_P(Types, OfWeightsGiveSoundLogitsThatComeOutTheSameTwice) {
    const RandomModel model{.n_layer = 2, .n_ff = 256, .n_vocab = 256};
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

// ---- stock ----

TEST(StockOracle, GivesTheWantedRowsInTheOrderOfTheBatch) {
    const Stock stock(make_model(RandomModel{}).path());
    const auto tokens = random_tokens(3, 10, stock.n_vocab());
    StockContext context = stock.context();
    const Logits all = context.decode(stock_batch(tokens)).logits;
    context.clear();
    std::vector<StockToken> batch = stock_batch(tokens, 0, 0, false);
    batch[2].want = batch[9].want = true;
    const StockRows some = context.decode(batch);
    Logits expected{.n_vocab = all.n_vocab, .values = {}};
    for (const size_t row : {2, 9}) {
        expected.values.insert(expected.values.end(), all.row(row).begin(), all.row(row).end());
    }
    EXPECT_THAT(some.logits, BitIdenticalTo(expected));
    EXPECT_TRUE(some.hidden.values.empty());
}

TEST(StockOracle, GivesHiddenStatesWhenAsked) {
    const Stock stock(make_model(RandomModel{}).path());
    const auto tokens = random_tokens(3, 10, stock.n_vocab());
    StockContext plain = stock.context();
    StockContext embedding = stock.context({.embeddings = true});
    const StockRows rows = embedding.decode(stock_batch(tokens));
    EXPECT_THAT(rows.logits, BitIdenticalTo(plain.decode(stock_batch(tokens)).logits));
    EXPECT_EQ(rows.hidden.n_vocab, static_cast<size_t>(stock.n_embd()));
    EXPECT_EQ(rows.hidden.rows(), 10U);
    EXPECT_NEAR(spread(rows.hidden), 1.0, 0.1);  // normed
}

TEST(StockOracle, CopiesRemovesAndClearsSequences) {
    const Stock stock(make_model(RandomModel{}).path());
    const auto tokens = random_tokens(5, 12, stock.n_vocab());
    StockContext context = stock.context({.n_seq_max = 2, .kv_unified = true});
    context.decode(stock_batch(tokens));
    context.copy(0, 1);
    EXPECT_TRUE(context.remove(1, 6));
    EXPECT_EQ(context.last_pos(0), 11);
    EXPECT_EQ(context.last_pos(1), 5);
    context.keep(1);
    EXPECT_EQ(context.last_pos(0), -1);
    context.clear();
    EXPECT_EQ(context.last_pos(1), -1);
}

TEST(StockOracle, SaysWhatStockSaidWhenItFails) {
    const TempFile nothing(".gguf", "nothing");
    EXPECT_THAT([&] { const Stock stock(nothing.path()); },
                ThrowsMessage<std::exception>(
                    AllOf(HasSubstr("stock cannot load " + nothing.path()), HasSubstr("magic"))));
    const Stock stock(make_model(RandomModel{}).path());
    StockContext context = stock.context();
    EXPECT_THAT([&] { context.decode(stock_batch(random_tokens(1, 4, 512), 0, 5)); },
                ThrowsMessage<std::exception>(HasSubstr("status -1")));
}

TEST(StockOracle, TellsAFullCacheFromABatchThatIsTooLarge) {
    const Stock stock(make_model(RandomModel{}).path());
    StockContext context = stock.context({.n_ctx = 256});
    StockRows rows;
    EXPECT_THAT([&] { context.try_decode(stock_batch(random_tokens(1, 257, 512)), rows); },
                ThrowsMessage<std::exception>(HasSubstr("257 tokens")));
    EXPECT_EQ(context.try_decode(stock_batch(random_tokens(1, 256, 512)), rows), 0);
    EXPECT_EQ(context.try_decode(stock_batch(random_tokens(1, 1, 512), 256), rows), 1);
}

// ---- stock's programs ----

std::string mapped_backend() {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        const size_t at = line.find("libggml-cpu");
        if (at != std::string::npos) return line.substr(at);
    }
    return "";
}

TEST(StockTools, UseTheVariantOfTheBackendThatThisProcessUses) {
    if (!have_stock_tool("llama-bench")) GTEST_SKIP() << "no llama-bench";
    start_stock();
    const TempFile& file = make_model(RandomModel{});
    const ToolRun bench = require_stock_tool(
        "llama-bench", {"-m", file.path(), "-p", "4", "-n", "2", "-r", "1", "-t", "1"});
    EXPECT_THAT(bench.out, HasSubstr("tg2"));
    const std::string backend = mapped_backend();
    if (backend.empty()) GTEST_SKIP() << "the CPU backend is linked in";
    EXPECT_THAT(bench.err, HasSubstr(backend));
}

TEST(StockTools, CompleteTextAsTheLibraryDoes) {
    if (!have_stock_tool("llama-completion")) GTEST_SKIP() << "no llama-completion";
    const RandomModel model{.tokenizer = true};
    const TempFile& file = make_model(model, GGML_TYPE_Q4_0);
    const Stock stock(file.path());
    const std::string prompt = "A test\\n";
    std::vector<llama_token> tokens(prompt.size());
    const int32_t n_tokens =
        llama_tokenize(stock.vocab(), prompt.data(), static_cast<int32_t>(prompt.size()),
                       tokens.data(), static_cast<int32_t>(tokens.size()), true, true);
    ASSERT_GT(n_tokens, 0);
    tokens.resize(static_cast<size_t>(n_tokens));

    StockContext context = stock.context();
    std::vector<StockToken> batch = stock_batch(tokens, 0, 0, false);
    std::string expected;
    for (int i = 0; i < 16; ++i) {
        batch.back().want = true;
        const Logits logits = context.decode(batch).logits;
        std::vector<float> allowed(logits.values);
        for (int32_t token = 0; token < stock.n_vocab(); ++token) {
            if (llama_vocab_is_eog(stock.vocab(), token)) {
                allowed[static_cast<size_t>(token)] = -std::numeric_limits<float>::infinity();
            }
        }
        const auto best =
            static_cast<llama_token>(std::ranges::max_element(allowed) - allowed.begin());
        char piece[64];
        const int32_t n = llama_token_to_piece(stock.vocab(), best, piece, sizeof piece, 0, false);
        ASSERT_GE(n, 0);
        expected.append(piece, static_cast<size_t>(n));
        batch = {{.token = best, .pos = batch.back().pos + 1}};
    }
    EXPECT_EQ(stock_completion(file.path(), prompt, 16), expected);
}

TEST(StockTools, GiveThePerplexityOfAText) {
    if (!have_stock_tool("llama-perplexity")) GTEST_SKIP() << "no llama-perplexity";
    std::string letters;
    for (const int32_t token : random_tokens(4, 1500, 26))
        letters += static_cast<char>('a' + token);
    const TempFile text(".txt", letters);
    // Chance would give the vocabulary's 512; a head of spread s adds about s * s / 2 to its
    // logarithm.
    const double perplexity =
        stock_perplexity(make_model({.tokenizer = true}).path(), text.path(), 256);
    EXPECT_GT(perplexity, 512.0);
    EXPECT_LT(perplexity, 512.0 * std::exp(4.0));
}

TEST(StockTools, SayWhichProgramIsMissing) {
    EXPECT_FALSE(have_stock_tool("llama-nonsense"));
    EXPECT_THAT(
        [] { require_stock_tool("llama-nonsense", {}); },
        ThrowsMessage<std::exception>(AllOf(HasSubstr("status 127"), HasSubstr("llama-nonsense"))));
}

}  // namespace
}  // namespace pleat::test
