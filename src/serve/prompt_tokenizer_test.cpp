#include "serve/prompt_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "generate/prompt.h"
#include "serve/demo_prompts_for_test.h"
#include "serve/request_error_for_test.h"

namespace pleat {
namespace {

using test::demo_prompts;
using test::demo_tokenizer;
using test::refusal_of;
using test::still_there;
using testing::AllOf;
using testing::HasSubstr;

std::string repeated(std::string_view text, size_t n) {
    std::string all;
    for (size_t i = 0; i < n; ++i) all += text;
    return all;
}

/// Long enough to be tokenized in pieces.
std::string random_chat(uint32_t seed, std::initializer_list<const char*> words) {
    std::mt19937 random(seed);
    std::string text;
    while (text.size() < (20 << 10)) text += *(words.begin() + random() % words.size());
    return text;
}

TEST(PromptTokenizer, GivesTheTokensOfTheWholeTextWhateverItsPieces) {
    const Tokenizer& whole = demo_tokenizer();
    for (uint32_t seed = 0; seed < 8; ++seed) {
        SCOPED_TRACE(seed);
        const std::string text =
            random_chat(seed, {"<|end|>", "<|user|>", "<|assistant|>", "<|", "end|>", " ", "\n",
                               "the cat", "h\u00e9", "<|end|", "<s>"});
        EXPECT_EQ(demo_prompts().beginning(text, still_there), prompt_tokens(whole, text));
        EXPECT_EQ(demo_prompts().rendered(text, still_there), rendered_prompt_tokens(whole, text));
        for (const bool special : {true, false}) {
            for (const bool around : {true, false}) {
                EXPECT_EQ(demo_prompts().tokenize(text, around, special, still_there),
                          whole.tokenize(text, around, special));
            }
        }
    }
}

TEST(PromptTokenizer, CountsTokensThatThereAreAtLeast) {
    const Tokenizer& whole = demo_tokenizer();
    EXPECT_EQ(demo_prompts().least_tokens(""), 0U);
    EXPECT_EQ(demo_prompts().least_tokens("a"), 1U);
    EXPECT_EQ(demo_prompts().least_tokens("<|end|>"), 1U);
    EXPECT_EQ(demo_prompts().least_tokens("a<|end|><|end|>b"), 3U);
    for (uint32_t seed = 0; seed < 8; ++seed) {
        const std::string text = random_chat(seed, {"<|end|>", "<|user|>", "<|", " the", "a", " "});
        EXPECT_LE(demo_prompts().least_tokens(text), whole.tokenize(text, false, true).size());
    }
}

TEST(PromptTokenizer, RefusesWhatCannotFitWithBothNumbers) {
    const PromptTokenizer prompts(demo_tokenizer(), 100);
    const std::string specials = repeated("a<|end|>", 101);
    const std::string text = repeated("the cat ", 1000);
    for (const std::string& too_long : {specials, text}) {
        const test::Refusal refusal = refusal_of([&] { prompts.beginning(too_long, still_there); });
        EXPECT_EQ(refusal.status, 400);
        EXPECT_THAT(refusal.message, AllOf(HasSubstr(std::to_string(too_long.size()) + " bytes"),
                                           HasSubstr("the context holds 100")));
        EXPECT_EQ(refusal_of([&] { prompts.rendered(too_long, still_there); }).status, 400);
        EXPECT_EQ(refusal_of([&] { prompts.continuation(too_long, 0, still_there); }).status, 400);
        EXPECT_FALSE(prompts.tokenize(too_long, false, true, still_there).empty());
    }
    EXPECT_EQ(prompts.beginning(repeated("<|end|>", 99), still_there).size(), 100U);
    EXPECT_EQ(refusal_of([&] { prompts.continuation("<|end|>", 100, still_there); }).status, 400);
}

TEST(PromptTokenizer, IsLinearInTheNumberOfSpecialTokens) {
    // In one piece this takes minutes.
    const std::string text = repeated("a<|end|>", 1 << 16);
    EXPECT_EQ(demo_prompts().beginning(text, still_there).size(), (2U << 16) + 1);
}

TEST(PromptTokenizer, GivesUpLongTextsOnceNobodyWaits) {
    const std::string text = repeated("a<|end|>", 1 << 12);
    int asked = 0;
    const ClientGone gone = [&] { return ++asked == 3; };
    EXPECT_EQ(refusal_of([&] { demo_prompts().beginning(text, gone); }).status, 499);
    EXPECT_EQ(asked, 3) << "between two pieces";
    const PromptTokenizer ending(demo_tokenizer(), 1 << 20, [] { return true; });
    EXPECT_EQ(refusal_of([&] { ending.beginning(text, still_there); }).status, 503);
    EXPECT_FALSE(ending.beginning("short", still_there).empty());
}

}  // namespace
}  // namespace pleat
