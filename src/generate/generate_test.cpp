#include "generate/generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "arch/registry.h"
#include "engine/logits_hash.h"
#include "generate/prompt.h"
#include "model/backend.h"
#include "text/demo_model_for_test.h"

namespace pleat {
namespace {

using test::demo_tokenizer;
using test::message_of;
using testing::HasSubstr;

constexpr uint32_t n_ctx_default = 256;

std::unique_ptr<Context> demo_context(uint32_t n_ctx = n_ctx_default, uint32_t n_batch = 2048,
                                      uint32_t n_seq = 1) {
    load_backends(PLEAT_BACKEND_DIR);
    static const std::shared_ptr<Model> model =
        open_model(PLEAT_MODELS_DIR "/pleat-demo-llama-16L-q4_0.gguf");
    ContextSettings settings;
    settings.cache.n_ctx = n_ctx;
    settings.cache.n_seq = n_seq;
    settings.n_batch = n_batch;
    return std::make_unique<Context>(model, LayerPlan::resolve({}, model->shape()), settings);
}

/// Greedy, and never over before the limit.
GenerationParams endless(int32_t n_predict) {
    GenerationParams params{.n_predict = n_predict};
    params.sampling.temp = 0.0F;
    params.sampling.ignore_eos = true;
    return params;
}

std::vector<int32_t> prompt_of(std::string_view text) {
    return prompt_tokens(demo_tokenizer(), text);
}

TEST(Generate, ShowsAllOfItsTextAsItAppears) {
    const auto context = demo_context();
    std::string shown;
    size_t n_calls = 0;
    const Generated g = generate(*context, demo_tokenizer(), prompt_of("The cat"), endless(32),
                                 {.on_text = [&](std::string_view text) {
                                     shown += text;
                                     ++n_calls;
                                 }});
    EXPECT_FALSE(g.text.empty());
    EXPECT_EQ(shown, g.text);
    EXPECT_GT(n_calls, 20U);
    EXPECT_EQ(g.tokens.size(), 32U);
    EXPECT_EQ(g.n_decoded, 31U) << "the last token drawn is not decoded";
    EXPECT_EQ(g.n_prompt, prompt_of("The cat").size());
    EXPECT_EQ(g.reason, FinishReason::length);
    EXPECT_GT(g.generation_tokens_per_second(), 0.0);
}

TEST(Generate, TakesThePromptInChunksOfABatch) {
    const std::vector<int32_t> prompt = prompt_of("The cat near the tower belonged to the miller.");
    const auto small = demo_context(n_ctx_default, 7);
    const Generated g = generate(*small, demo_tokenizer(), prompt, endless(0));

    const auto by_hand = demo_context(n_ctx_default, 7);
    for (size_t i = 0; i < prompt.size(); i += 7) {
        const auto chunk = std::span(prompt).subspan(i, std::min<size_t>(7, prompt.size() - i));
        ASSERT_EQ(by_hand->decode(0, chunk), DecodeStatus::ok);
    }
    EXPECT_EQ(g.logits_hash, logits_hash(by_hand->logits(0)));
}

TEST(Generate, OfNoTokensOnlyRunsThePrompt) {
    const auto context = demo_context();
    const Generated g = generate(*context, demo_tokenizer(), prompt_of("The cat"), endless(0));
    EXPECT_EQ(g.text, "");
    EXPECT_EQ(g.reason, FinishReason::length);
    EXPECT_EQ(g.logits_hash.size(), 16U);
    EXPECT_EQ(g.generation_tokens_per_second(), 0.0);
    EXPECT_EQ(context->next_position(0), static_cast<int32_t>(prompt_of("The cat").size()));
}

TEST(Generate, FillsTheContextAndEnds) {
    const auto context = demo_context();
    const std::vector<int32_t> prompt = prompt_of("The cat");
    const Generated g = generate(*context, demo_tokenizer(), prompt, endless(-1));
    EXPECT_EQ(g.reason, FinishReason::context);
    EXPECT_EQ(prompt.size() + g.tokens.size(), n_ctx_default);
}

TEST(Generate, ContinuesASequence) {
    const auto whole = demo_context();
    const auto parts = demo_context(n_ctx_default, 2048, 2);
    const std::vector<int32_t> prompt = prompt_of("The cat near the tower belonged");
    const auto first = std::span(prompt).first(4);
    const auto rest = std::span(prompt).subspan(4);
    const Generated expected = generate(*whole, demo_tokenizer(), prompt, endless(24));
    generate(*parts, demo_tokenizer(), first, endless(0), {}, 1);
    EXPECT_EQ(generate(*parts, demo_tokenizer(), rest, endless(24), {}, 1).text, expected.text);
}

TEST(Generate, RefusesAPromptThatDoesNotFitWithBothNumbers) {
    const auto context = demo_context();
    std::vector<int32_t> prompt(300, 40);
    EXPECT_EQ(message_of([&] { generate(*context, demo_tokenizer(), prompt, endless(1)); }),
              "the prompt has 300 tokens, the context 256: shorten it, or give a larger -c");
    prompt.resize(200);
    generate(*context, demo_tokenizer(), prompt, endless(0));
    EXPECT_EQ(message_of([&] { generate(*context, demo_tokenizer(), prompt, endless(1)); }),
              "the prompt has 200 tokens, but 200 of the context's 256 are in use");
    EXPECT_THAT(message_of([&] { generate(*context, demo_tokenizer(), {}, endless(1)); }),
                HasSubstr("the prompt is empty"));
}

TEST(Generate, OfAPromptAsLongAsTheContextEndsAtOnce) {
    const auto context = demo_context();
    const std::vector<int32_t> prompt(n_ctx_default, 40);
    const Generated g = generate(*context, demo_tokenizer(), prompt, endless(-1));
    EXPECT_EQ(g.reason, FinishReason::context);
    EXPECT_TRUE(g.tokens.empty());
}

TEST(Generate, EndsWhenCancelled) {
    const auto context = demo_context();
    size_t n_asked = 0;
    const Generated g = generate(*context, demo_tokenizer(), prompt_of("The cat"), endless(-1),
                                 {.cancelled = [&] { return ++n_asked > 5; }});
    EXPECT_EQ(g.reason, FinishReason::cancelled);
    EXPECT_EQ(g.n_decoded, 4U) << "the first step is the prompt's";
    EXPECT_EQ(g.tokens.size(), 5U);
}

TEST(Generate, CancelledInThePromptHasNoText) {
    const auto context = demo_context();
    const Generated g = generate(*context, demo_tokenizer(), prompt_of("The cat"), endless(-1),
                                 {.cancelled = [] { return true; }});
    EXPECT_EQ(g.reason, FinishReason::cancelled);
    EXPECT_EQ(g.text, "");
    EXPECT_EQ(g.logits_hash, "");
}

TEST(Generate, WithASeedIsRepeatable) {
    GenerationParams params{.n_predict = 40};
    params.sampling.seed = 7;
    const auto run = [&] {
        const auto context = demo_context();
        return generate(*context, demo_tokenizer(), prompt_of("The cat"), params);
    };
    const Generated first = run();
    const Generated second = run();
    EXPECT_EQ(first.tokens, second.tokens);
    EXPECT_EQ(first.logits_hash, second.logits_hash);
    EXPECT_EQ(first.seed, 7U);
}

TEST(Generate, ResumesASequenceThatHoldsTheBeginning) {
    const std::vector<int32_t> prompt = prompt_of("The cat near the tower is");
    ASSERT_GT(prompt.size(), 4U);
    ASSERT_LE(prompt.size(), 8U);  // so that both cut it alike
    GenerationParams params = endless(24);
    params.sampling.penalty_repeat = 1.5F;  // what is held counts, too
    const auto whole = demo_context(n_ctx_default, 4);
    const Generated expected = generate(*whole, demo_tokenizer(), prompt, params);

    const auto context = demo_context();
    ASSERT_EQ(context->decode(0, std::span(prompt).first(4)), DecodeStatus::ok);
    const Generated resumed = resume(*context, demo_tokenizer(), prompt, params);
    EXPECT_EQ(resumed.tokens, expected.tokens);
    EXPECT_EQ(resumed.n_prompt, prompt.size() - 4);
    EXPECT_THAT(message_of([&] { resume(*context, demo_tokenizer(), prompt, params); }),
                HasSubstr("none is left to run"));
}

}  // namespace
}  // namespace pleat
