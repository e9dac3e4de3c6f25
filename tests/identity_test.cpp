#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "support/pleat_run.h"
#include "support/random_model.h"
#include "support/random_tokens.h"
#include "support/side_by_side.h"
#include "support/stock.h"
#include "support/stock_tools.h"
#include "support/temp_dir.h"

// The identity plan gives stock's logits in every bit: the claim that everything else stands on.
namespace pleat::test {
namespace {

/// Both sides on one file: every position of the prefill, then step by step.
void expect_same_bits(const std::string& path, size_t prefill, size_t steps,
                      const StockSettings& settings, int n_vocab = 512,
                      const StockModelSettings& model_settings = {}) {
    const auto tokens = random_tokens(7, prefill + steps, n_vocab);
    EXPECT_THAT(pleat_logits(path, "", tokens, prefill, settings, model_settings),
                BitIdenticalTo(stock_logits(path, tokens, prefill, settings, model_settings)));
}

struct TypeCase {
    std::string name;
    ggml_type type = GGML_TYPE_F32;
    bool q4_k_m = false;
};

void PrintTo(const TypeCase& c, std::ostream* out) { *out << c.name; }

const TempFile& model_of(const TypeCase& c, const RandomModel& model) {
    return c.q4_k_m ? make_model(model, LLAMA_FTYPE_MOSTLY_Q4_K_M) : make_model(model, c.type);
}

const std::vector<TypeCase> types{
    {"f32", GGML_TYPE_F32},    {"f16", GGML_TYPE_F16},       {"bf16", GGML_TYPE_BF16},
    {"q8_0", GGML_TYPE_Q8_0},  {"q4_0", GGML_TYPE_Q4_0},     {"q5_0", GGML_TYPE_Q5_0},
    {"q5_K", GGML_TYPE_Q5_K},  {"q6_K", GGML_TYPE_Q6_K},     {"q4_K", GGML_TYPE_Q4_K},
    {"q2_K", GGML_TYPE_Q2_K},  {"iq4_nl", GGML_TYPE_IQ4_NL}, {"q4_K_M", GGML_TYPE_COUNT, true},
    {"mxfp4", GGML_TYPE_MXFP4}};

std::string type_name(const testing::TestParamInfo<TypeCase>& info) { return info.param.name; }

class IdentityOfType : public testing::TestWithParam<TypeCase> {};

TEST_P(IdentityOfType, EqualsStockForPromptsOfManyLengthsOnOneAndTwoThreads) {
    const TempFile& file = model_of(GetParam(), {});
    for (const int n_threads : {1, 2}) {
        for (const size_t prefill : {size_t{1}, size_t{7}, size_t{64}, size_t{200}}) {
            SCOPED_TRACE(testing::Message() << n_threads << " threads, prefill " << prefill);
            expect_same_bits(file.path(), prefill, 32,
                             {.n_ctx = 1024, .n_threads = n_threads, .n_threads_batch = n_threads});
        }
    }
}

TEST_P(IdentityOfType, EqualsStockBeyond512CellsAndAcrossUbatches) {
    const TempFile& file = model_of(GetParam(), {.n_layer = 2, .tied = true});
    expect_same_bits(file.path(), 600, 32, {.n_ctx = 1024, .n_threads = 2, .n_threads_batch = 2});
}

TEST_P(IdentityOfType, EqualsStockWithoutFlashAttention) {
    const TempFile& file = model_of(GetParam(), {.n_layer = 2});
    for (const size_t prefill : {size_t{7}, size_t{200}, size_t{600}}) {
        expect_same_bits(file.path(), prefill, 16,
                         {.n_ctx = 1024,
                          .n_threads = 2,
                          .n_threads_batch = 2,
                          .flash_attn = LLAMA_FLASH_ATTN_TYPE_DISABLED});
    }
}

INSTANTIATE_TEST_SUITE_P(Types, IdentityOfType, testing::ValuesIn(types), type_name);

struct ModelCase {
    std::string name;
    RandomModel model;
};

void PrintTo(const ModelCase& c, std::ostream* out) { *out << c.name; }

class IdentityOfModel : public testing::TestWithParam<ModelCase> {};

TEST_P(IdentityOfModel, EqualsStockInF32AndQ40) {
    for (const ggml_type type : {GGML_TYPE_F32, GGML_TYPE_Q4_0}) {
        SCOPED_TRACE(ggml_type_name(type));
        const RandomModel& model = GetParam().model;
        expect_same_bits(make_model(model, type).path(), 70, 12,
                         {.n_ctx = 1024, .n_threads = 2, .n_threads_batch = 2}, model.n_vocab);
        expect_same_bits(make_model(model, type).path(), 70, 4,
                         {.n_ctx = 1024, .flash_attn = LLAMA_FLASH_ATTN_TYPE_DISABLED},
                         model.n_vocab);
    }
}

const std::vector<ModelCase> models{
    {"biases", {.biases = true}},
    {"scales", {.scales = true}},
    {"biases_and_scales", {.biases = true, .scales = true}},
    {"fused_qkv", {.fused_qkv = true}},
    {"fused_qkv_with_biases", {.biases = true, .scales = true, .fused_qkv = true}},
    {"rope_freqs", {.rope_freqs = true}},
    {"rope_none", {.rope_scaling = "none"}},
    {"rope_linear", {.rope_scaling = "linear"}},
    {"rope_yarn", {.rope_scaling = "yarn"}},
    {"rope_longrope", {.rope_scaling = "longrope"}},
    {"rope_longrope_short", {.rope_scaling = "longrope", .rope_orig_ctx = 1024}},
    {"odd_heads", {.n_embd = 192, .n_head = 6, .n_head_kv = 2, .n_ff = 320, .n_vocab = 500}},
    {"wide_heads", {.n_head = 4, .n_head_kv = 1, .head_dim = 128}},
    {"narrow_heads", {.n_head = 4, .n_head_kv = 2, .head_dim = 32}},
    {"all_heads", {.n_head = 8, .n_head_kv = 8}},
    {"experts", {.n_expert = 8, .n_expert_used = 2}},
    {"one_expert", {.n_expert = 4, .n_expert_used = 1}},
    {"experts_with_scales", {.n_expert = 4, .n_expert_used = 3, .scales = true}},
    {"one_layer", {.n_layer = 1}},
};

INSTANTIATE_TEST_SUITE_P(Models, IdentityOfModel, testing::ValuesIn(models),
                         [](const auto& param) { return param.param.name; });

TEST(Identity, EqualsStockWithEveryTypeOfKvCache) {
    for (const int head_dim : {32, 64, 128, 192}) {
        const TempFile& file = make_model(
            {.n_layer = 2, .n_head = 4, .n_head_kv = 2, .head_dim = head_dim}, GGML_TYPE_Q8_0);
        for (const ggml_type type :
             {GGML_TYPE_F32, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_Q4_1,
              GGML_TYPE_IQ4_NL, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1}) {
            SCOPED_TRACE(testing::Message() << ggml_type_name(type) << ", heads of " << head_dim);
            expect_same_bits(file.path(), 70, 8,
                             {.n_ctx = 512,
                              .n_threads = 2,
                              .n_threads_batch = 2,
                              .type_k = type,
                              .type_v = type});
        }
        expect_same_bits(file.path(), 70, 8,
                         {.n_ctx = 512, .type_k = GGML_TYPE_Q8_0, .type_v = GGML_TYPE_F16});
        expect_same_bits(file.path(), 70, 8,
                         {.n_ctx = 512,
                          .flash_attn = LLAMA_FLASH_ATTN_TYPE_DISABLED,
                          .type_k = GGML_TYPE_Q4_0,
                          .type_v = GGML_TYPE_F16});
    }
}

TEST(Identity, EqualsStockForSmallUbatchesAndBatches) {
    const TempFile& file = make_model({.n_layer = 2}, LLAMA_FTYPE_MOSTLY_Q4_K_M);
    for (const uint32_t n_ubatch : {1U, 13U, 64U, 100U}) {
        SCOPED_TRACE(n_ubatch);
        expect_same_bits(file.path(), 300, 4, {.n_ctx = 512, .n_ubatch = n_ubatch});
    }
}

TEST(Identity, EqualsStockWithoutMappingAndWithoutRepacking) {
    const TempFile& file = make_model({.tied = true}, GGML_TYPE_Q4_0);
    for (const bool mmap : {true, false}) {
        for (const bool repack : {true, false}) {
            SCOPED_TRACE(testing::Message() << "mmap " << mmap << ", repack " << repack);
            expect_same_bits(file.path(), 70, 8, {}, 512,
                             {.use_extra_bufts = repack, .mmap = mmap});
        }
    }
}

TEST(Identity, EqualsStockOnASplitFile) {
    if (!have_stock_tool("llama-gguf-split")) GTEST_SKIP() << "llama-gguf-split is not installed";
    const TempDir dir;
    require_stock_tool("llama-gguf-split",
                       {"--split", "--split-max-tensors", "7",
                        make_model({}, GGML_TYPE_Q4_0).path(), dir.file("part")});
    expect_same_bits(dir.file("part-00001-of-00006.gguf"), 70, 8, {});
}

TEST(Identity, EqualsStockOnTheShippedModel) {
    const std::string path = PLEAT_MODELS_DIR "/pleat-demo-llama-16L-q4_0.gguf";
    expect_same_bits(path, 200, 32, {.n_ctx = 512, .n_threads = 2, .n_threads_batch = 2}, 1024);
}

/// Prompts of unequal length in one batch, then steps of both, of one, and of both again.
void expect_same_bits_of_sequences(const StockSettings& settings, ggml_type type) {
    SideBySide both(make_model({.n_layer = 3}, type).path(), settings);
    both.run({{0, 80}, {1, 70}});
    both.step({0, 1}, 4);
    both.step({1});
    both.run({{0, 3}, {1, 2}});
    both.run({{0, 1}, {1, 1}, {0, 1}, {1, 1}});
    // Rewinding and writing on.
    both.cut(0, 60);
    both.run({{0, 9}, {1, 1}});
    // A third sequence from the first one's beginning.
    both.copy(0, 2);
    both.run({{2, 5}});
    both.step({0, 1, 2});
    both.step({2, 0});
    both.clear();
    both.run({{1, 20}, {0, 33}});
}

TEST(Identity, EqualsStockForSeveralSequencesInStreamsOfTheirOwn) {
    for (const ggml_type type : {GGML_TYPE_F32, GGML_TYPE_Q4_0, GGML_TYPE_Q4_K}) {
        SCOPED_TRACE(ggml_type_name(type));
        for (const auto flash : {LLAMA_FLASH_ATTN_TYPE_ENABLED, LLAMA_FLASH_ATTN_TYPE_DISABLED}) {
            expect_same_bits_of_sequences({.n_ctx = 1536,
                                           .n_ubatch = 64,
                                           .n_seq_max = 3,
                                           .n_threads = 2,
                                           .n_threads_batch = 2,
                                           .flash_attn = flash},
                                          type);
        }
    }
}

TEST(Identity, EqualsStockForSeveralSequencesInOneUnifiedCache) {
    for (const auto flash : {LLAMA_FLASH_ATTN_TYPE_ENABLED, LLAMA_FLASH_ATTN_TYPE_DISABLED}) {
        expect_same_bits_of_sequences({.n_ctx = 1536,
                                       .n_ubatch = 64,
                                       .n_seq_max = 3,
                                       .n_threads = 2,
                                       .n_threads_batch = 2,
                                       .flash_attn = flash,
                                       .kv_unified = true},
                                      GGML_TYPE_Q4_0);
    }
}

TEST(Identity, EqualsStockForABatchLargerThanOneSequencesContext) {
    SideBySide both(make_model({.n_layer = 2}, GGML_TYPE_Q4_K).path(),
                    {.n_ctx = 2048, .n_ubatch = 100, .n_seq_max = 8});
    std::vector<Part> parts;
    for (int sequence = 0; sequence < 8; ++sequence) parts.push_back({sequence, 100});
    both.run(parts);
}

TEST(Identity, EqualsStockWhenOnlySomeRowsAreWanted) {
    SideBySide both(make_model({}, LLAMA_FTYPE_MOSTLY_Q4_K_M).path(),
                    {.n_ctx = 512, .n_ubatch = 32});
    both.run({{0, 100}}, {.all = false, .rows = {3, 40, 41, 99}});
}

TEST(Identity, HiddenStatesAfterTheFinalNormEqualStocksEmbeddings) {
    const TempFile& file = make_model({}, GGML_TYPE_Q8_0);
    const Stock stock(file.path());
    StockContext theirs = stock.context({.embeddings = true});
    const auto ours = pleat_context(file.path());
    const auto tokens = random_tokens(5, 40, 512);
    const StockRows expected = theirs.decode(stock_batch(tokens));
    EXPECT_THAT(pleat_decode(*ours, stock_batch(tokens)), BitIdenticalTo(expected.logits));
    ours->clear();
    Batch batch;
    for (const llama_token token : tokens) {
        batch.push_back({token, static_cast<int32_t>(batch.size()), 0, true});
    }
    ASSERT_EQ(ours->decode(batch, Outputs::hidden), DecodeStatus::ok);
    Logits hidden{.n_vocab = ours->n_embd(), .values = {}};
    for (size_t i = 0; i < ours->n_outputs(); ++i) {
        const auto row = ours->hidden(i);
        hidden.values.insert(hidden.values.end(), row.begin(), row.end());
    }
    EXPECT_THAT(hidden, BitIdenticalTo(expected.hidden));
}

}  // namespace
}  // namespace pleat::test
