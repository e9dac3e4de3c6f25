#include "serve/text_completion_response.h"

#include <gtest/gtest.h>

#include "serve/request_error_for_test.h"
#include "text/demo_model_for_test.h"

namespace pleat {
namespace {

using nlohmann::ordered_json;
using test::demo_tokenizer;
using test::json;

const AnswerHead head{.id = "cmpl-x", .created = 7, .model = "tiny", .fingerprint = "pleat-0-abc"};

Answer answer(const std::string& text, FinishReason reason) {
    return {.text = text,
            .tokens = {{.drawn = {.token = 104, .logprob = -0.25F},
                        .top = {{.token = 104, .logprob = -0.25F}}},
                       {.drawn = {.token = 105, .logprob = -0.5F}}},
            .result = {.reason = reason, .timings = {.n_prompt = 5, .n_predicted = 2}}};
}

TEST(TextCompletionAnswer, HasOpenAIsMembers) {
    const GenerationRequest request{.n = 2};
    ordered_json whole =
        TextCompletionResponse(request, demo_tokenizer(), head)
            .whole({answer("hi", FinishReason::eos), answer("ho", FinishReason::length)});
    whole.erase("timings");
    EXPECT_EQ(whole, json(R"({"choices": [
        {"text": "hi", "index": 0, "logprobs": null, "finish_reason": "stop"},
        {"text": "ho", "index": 1, "logprobs": null, "finish_reason": "length"}],
        "created": 7, "model": "tiny", "system_fingerprint": "pleat-0-abc",
        "object": "text_completion", "id": "cmpl-x",
        "usage": {"completion_tokens": 4, "prompt_tokens": 5, "total_tokens": 9,
                  "prompt_tokens_details": {"cached_tokens": 0}}})"));
}

TEST(TextCompletionAnswer, TellsProbabilitiesInBothForms) {
    const GenerationRequest request{.n_probs = 1};
    const ordered_json logprobs = TextCompletionResponse(request, demo_tokenizer(), head)
                                      .whole({answer("hi", FinishReason::eos)})
                                      .at("choices")[0]
                                      .at("logprobs");
    EXPECT_EQ(logprobs.at("tokens"), json(R"(["h", "i"])"));
    EXPECT_EQ(logprobs.at("token_logprobs"), json("[-0.25, -0.5]"));
    EXPECT_EQ(logprobs.at("top_logprobs"), json(R"([{"h": -0.25}, {}])"));
    EXPECT_EQ(logprobs.at("text_offset"), json("[0, 1]"));
    EXPECT_EQ(logprobs.at("content")[1].at("id"), 105);
}

TEST(TextCompletionChunks, KeepCountingCharacters) {
    const GenerationRequest request{.n_probs = 0};
    const TextCompletionResponse response(request, demo_tokenizer(), head);
    size_t offset = 0;
    // The two bytes of one character, then another.
    const auto offsets = [&](std::vector<TokenOutput> tokens) {
        const JobEvent event{.text = "", .tokens = std::move(tokens)};
        return response.part(0, event, offset).at("choices")[0].at("logprobs").at("text_offset");
    };
    EXPECT_EQ(offsets({{.drawn = {.token = 195}}}), json("[0]"));
    EXPECT_EQ(offsets({{.drawn = {.token = 169}}, {.drawn = {.token = 104}}}), json("[1, 1]"));
    EXPECT_EQ(offset, 2U);
}

TEST(TextCompletionChunks, HaveOneChoiceEach) {
    const GenerationRequest request{.n = 1, .stream = true};
    const TextCompletionResponse response(request, demo_tokenizer(), head);
    size_t offset = 0;
    EXPECT_EQ(response.part(2, {.text = "hi"}, offset).at("choices"),
              json(R"([{"text": "hi", "index": 2, "logprobs": null, "finish_reason": null}])"));
    const ordered_json end = response.end(2, {.reason = FinishReason::length});
    EXPECT_EQ(end.at("choices"),
              json(R"([{"text": "", "index": 2, "logprobs": null, "finish_reason": "length"}])"));
    EXPECT_FALSE(end.contains("usage"));
    const ordered_json usage = response.usage({{.n_prompt = 3, .n_predicted = 2}});
    EXPECT_EQ(usage.at("choices"), json("[]"));
    EXPECT_EQ(usage.at("usage").at("total_tokens"), 5);
    EXPECT_EQ(usage.at("object"), "text_completion");
}

}  // namespace
}  // namespace pleat
