#include "serve/answer.h"

#include <gtest/gtest.h>

#include <set>

#include "serve/request_error_for_test.h"
#include "text/demo_model_for_test.h"

namespace pleat {
namespace {

using test::demo_tokenizer;
using test::json;

TEST(Usage, CountsEachPromptOnceAndAllAnswers) {
    const JobTimings a{.n_prompt = 5, .n_cached = 2, .n_predicted = 3};
    const JobTimings b{.n_prompt = 7, .n_cached = 0, .n_predicted = 4};
    EXPECT_EQ(usage_of({a, a, b, b}, 2), (Usage{12, 2, 14}));
    EXPECT_EQ(usage_of({a, b}, 1), (Usage{12, 2, 7}));
    EXPECT_EQ(usage_json({12, 2, 14}),
              json(R"({"completion_tokens": 14, "prompt_tokens": 12, "total_tokens": 26,
                       "prompt_tokens_details": {"cached_tokens": 2}})"));
}

TEST(Timings, AreLlamaServers) {
    const JobTimings timings{
        .n_prompt = 10, .n_cached = 2, .n_predicted = 4, .prompt_ms = 16, .predicted_ms = 2};
    EXPECT_EQ(timings_json(timings),
              json(R"({"cache_n": 2, "prompt_n": 8, "prompt_ms": 16.0, "prompt_per_token_ms": 2.0,
                       "prompt_per_second": 500.0, "predicted_n": 4, "predicted_ms": 2.0,
                       "predicted_per_token_ms": 0.5, "predicted_per_second": 2000.0})"));
}

TEST(Timings, OfNothingAreNumbersToo) {
    const nlohmann::ordered_json timings = timings_json({});
    for (const auto& [name, value] : timings.items()) {
        EXPECT_TRUE(value.is_number() && value == 0) << name;
    }
}

TEST(FinishReasons, HaveNamesOfBothApis) {
    struct Case {
        FinishReason reason;
        std::string_view finish_reason;
        std::string_view with_calls;
        std::string_view stop_type;
    };
    for (const Case& c : {Case{FinishReason::eos, "stop", "tool_calls", "eos"},
                          Case{FinishReason::stop_string, "stop", "tool_calls", "word"},
                          Case{FinishReason::length, "length", "length", "limit"},
                          Case{FinishReason::context, "length", "length", "limit"}}) {
        EXPECT_EQ(finish_reason_text(c.reason), c.finish_reason);
        EXPECT_EQ(finish_reason_text(c.reason, true), c.with_calls);
        EXPECT_EQ(stop_type_text(c.reason), c.stop_type);
    }
}

TEST(RandomIds, DoNotRepeat) {
    std::set<std::string> ids;
    for (int i = 0; i < 1000; ++i) ids.insert(random_id("x-"));
    EXPECT_EQ(ids.size(), 1000U);
    EXPECT_EQ(ids.begin()->size(), 34U);
}

TEST(TokenProbs, TellIdTextBytesAndLikeliest) {
    const std::vector<int32_t> tokens = demo_tokenizer().tokenize("h", false, false);
    const TokenOutput token{.drawn = {.token = tokens.at(0), .logprob = -0.5F},
                            .top = {{.token = tokens.at(0), .logprob = -0.5F}}};
    EXPECT_EQ(token_probs_json(token, demo_tokenizer(), false),
              json(R"({"id": 104, "token": "h", "bytes": [104], "logprob": -0.5, "top_logprobs":
                       [{"id": 104, "token": "h", "bytes": [104], "logprob": -0.5}]})"));
}

TEST(TokenProbs, OfHalfACharacterAreValidUtf8) {
    const TokenOutput token{.drawn = {.token = 195, .logprob = -1.0F}};
    const auto told = token_probs_json(token, demo_tokenizer(), false);
    EXPECT_EQ(told.at("bytes"), json("[195]"));
    EXPECT_EQ(told.at("token"), "\xEF\xBF\xBD");
}

TEST(TokenProbs, OfControlTokensHaveATextWhereOneIsShown) {
    const TokenOutput token{.drawn = {.token = 1021}};
    EXPECT_EQ(token_probs_json(token, demo_tokenizer(), false).at("token"), "");
    EXPECT_EQ(token_probs_json(token, demo_tokenizer(), true).at("token"), "<|end|>");
}

TEST(JsonText, IsValidUtf8WhateverIsInIt) {
    EXPECT_EQ(json_text({{"a", "x\xC3"}}), "{\"a\":\"x\xEF\xBF\xBD\"}");
    EXPECT_EQ(event_text({{"a", 1}}), "data: {\"a\":1}\n\n");
}

}  // namespace
}  // namespace pleat
