#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>

#include "arch/registry.h"
#include "base/error.h"
#include "support/pleat_run.h"
#include "support/random_model.h"
#include "support/random_tokens.h"

// What a Context promises beside its bits: full caches and bad batches are answers, not ends.
namespace pleat::test {
namespace {

using testing::HasSubstr;

const RandomModel small{
    .n_layer = 2, .n_embd = 64, .n_head = 4, .n_head_kv = 2, .n_ff = 96, .n_vocab = 80};

std::unique_ptr<Context> small_context(const StockSettings& settings = {},
                                       const std::string& spec = "") {
    return pleat_context(make_model(small).path(), spec, settings);
}

template <typename Function>
std::string error_of(Function&& function) {
    try {
        function();
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

TEST(Context, TellsThatItsCacheIsFullAndKeepsNothingOfTheBatch) {
    const auto context = small_context({.n_ctx = 256, .n_ubatch = 64});
    const auto tokens = random_tokens(1, 300, 80);
    EXPECT_EQ(context->decode(0, tokens), DecodeStatus::cache_full);
    EXPECT_EQ(context->next_position(0), 0);
    EXPECT_EQ(context->n_outputs(), 0U);
    EXPECT_EQ(context->decode(0, std::span(tokens).first(256)), DecodeStatus::ok);
    EXPECT_EQ(context->decode(0, std::span(tokens).first(1)), DecodeStatus::cache_full);
    context->remove(0, 200);
    EXPECT_EQ(context->decode(0, std::span(tokens).first(1)), DecodeStatus::ok);
    EXPECT_EQ(context->next_position(0), 201);
}

TEST(Context, RefusesTokensPositionsAndSequencesOutOfRange) {
    const auto context = small_context();
    const auto decode = [&](const BatchToken& t) { (void)context->decode(std::vector{t}); };
    EXPECT_EQ(error_of([&] { decode({.token = 80}); }),
              "token 80 is not in the vocabulary; this model has 80 tokens, so 0 <= token < 80");
    EXPECT_THAT(error_of([&] { decode({.token = -1}); }), HasSubstr("token -1"));
    EXPECT_EQ(error_of([&] { decode({.token = 1, .sequence = 1}); }),
              "sequence 1 does not exist; this context has 1, so 0 <= sequence < 1");
    EXPECT_EQ(error_of([&] { decode({.token = 1, .position = 5}); }),
              "position 5 given for sequence 0, expected 0: positions follow each other");
    EXPECT_THAT(error_of([&] { (void)context->decode(Batch{}); }), HasSubstr("empty batch"));
    EXPECT_THAT(error_of([&] { (void)context->logits(0); }), HasSubstr("output 0 asked for"));
}

TEST(Context, RefusesSettingsThatDoNotGoTogether) {
    EXPECT_EQ(
        error_of([] {
            small_context({.flash_attn = LLAMA_FLASH_ATTN_TYPE_DISABLED, .type_v = GGML_TYPE_Q8_0});
        }),
        "a quantised V cache (q8_0) needs flash attention: use -fa on, or -ctv f16");
    // Heads of 16 elements do not hold whole blocks of 32.
    EXPECT_THAT(error_of([] { small_context({.type_k = GGML_TYPE_Q8_0}); }), HasSubstr("q8_0"));
    EXPECT_THAT(error_of([] { small_context({.n_threads = 0}); }), HasSubstr("threads"));
    EXPECT_THAT(error_of([] { small_context({.n_ctx = 2000000000}); }),
                HasSubstr("of memory are free; ask for a smaller context with -c"));
}

TEST(Context, ReusesItsGraphFromTokenToToken) {
    const auto context = small_context({.n_ctx = 1024});
    const auto tokens = random_tokens(1, 300, 80);
    ASSERT_EQ(context->decode(0, std::span(tokens).first(10)), DecodeStatus::ok);
    ASSERT_EQ(context->decode(0, std::span(tokens).subspan(10, 1)), DecodeStatus::ok);
    const uint64_t built = context->n_graphs_built();
    for (size_t i = 11; i < 256; ++i) {
        ASSERT_EQ(context->decode(0, std::span(tokens).subspan(i, 1)), DecodeStatus::ok);
    }
    EXPECT_EQ(context->n_graphs_built(), built);
    ASSERT_EQ(context->decode(0, std::span(tokens).subspan(256, 1)), DecodeStatus::ok);
    EXPECT_EQ(context->n_graphs_built(), built + 1) << "another 256 cells to look at";
}

TEST(Context, StopsWhenCancelledAndGoesOnAfterwards) {
    const TempFile& file = make_model({.n_layer = 8, .n_embd = 512, .n_ff = 2048});
    const auto context = pleat_context(file.path(), "", {.n_ctx = 4096, .n_ubatch = 512});
    const auto tokens = random_tokens(1, 4000, 512);
    DecodeStatus status = DecodeStatus::ok;
    std::atomic<bool> done = false;
    std::thread worker([&] {
        status = context->decode(0, tokens);
        done = true;
    });
    // A cancel that comes before the decode begins is forgotten by it, so it is repeated.
    while (!done) {
        context->cancel();
        std::this_thread::yield();
    }
    worker.join();
    EXPECT_EQ(status, DecodeStatus::cancelled);
    EXPECT_EQ(context->next_position(0), 0);
    const auto fresh = pleat_context(file.path(), "", {.n_ctx = 4096, .n_ubatch = 512});
    const auto batch = stock_batch(std::span(tokens).first(20));
    EXPECT_THAT(pleat_decode(*context, batch), BitIdenticalTo(pleat_decode(*fresh, batch)));
}

TEST(Context, RunsAPlanWithoutAnyAttention) {
    const auto context = small_context({}, "drop:0,1");
    EXPECT_EQ(context->cache_bytes(), 0U);
    EXPECT_EQ(context->decode(0, random_tokens(1, 20, 80)), DecodeStatus::ok);
    EXPECT_EQ(context->next_position(0), 20);
}

TEST(Context, CopiesOnlyIntoAnEmptySequence) {
    const auto context = small_context({.n_ctx = 512, .n_seq_max = 2});
    ASSERT_EQ(context->decode(0, random_tokens(1, 5, 80)), DecodeStatus::ok);
    context->copy(0, 1, 3);
    EXPECT_EQ(context->next_position(1), 3);
    EXPECT_THAT(error_of([&] { context->copy(0, 1); }), HasSubstr("sequence 1 is not empty"));
    EXPECT_THAT(error_of([&] { context->copy(0, 2); }), HasSubstr("sequence 2 does not exist"));
    EXPECT_THAT(error_of([&] { context->remove(-1); }), HasSubstr("sequence -1 does not exist"));
}

}  // namespace
}  // namespace pleat::test
