#include "serve/chat_response.h"

#include <gtest/gtest.h>

#include "serve/request_error_for_test.h"
#include "text/demo_model_for_test.h"

namespace pleat {
namespace {

using nlohmann::ordered_json;
using test::demo_tokenizer;
using test::json;

const AnswerHead head{
    .id = "chatcmpl-x", .created = 7, .model = "tiny", .fingerprint = "pleat-0-abc"};

Answer answer(FinishReason reason) {
    return {
        .text = "h",
        .tokens = {{.drawn = {.token = 104, .logprob = -0.25F}}},
        .result = {.reason = reason, .timings = {.n_prompt = 5, .n_cached = 4, .n_predicted = 1}}};
}

TEST(ChatResponses, HaveOpenAIsMembers) {
    const GenerationRequest request{.n = 2};
    ordered_json whole = ChatResponse(request, demo_tokenizer(), head)
                             .whole({answer(FinishReason::eos), answer(FinishReason::length)},
                                    {{.content = "hi"}, {.content = "ho", .reasoning = "hm"}});
    whole.erase("timings");
    EXPECT_EQ(whole, json(R"({"choices": [
        {"finish_reason": "stop", "index": 0, "message": {"role": "assistant", "content": "hi"}},
        {"finish_reason": "length", "index": 1,
         "message": {"role": "assistant", "content": "ho", "reasoning_content": "hm"}}],
        "created": 7, "id": "chatcmpl-x", "model": "tiny", "system_fingerprint": "pleat-0-abc",
        "object": "chat.completion",
        "usage": {"completion_tokens": 2, "prompt_tokens": 5, "total_tokens": 7,
                  "prompt_tokens_details": {"cached_tokens": 4}}})"));
}

TEST(ChatResponses, TellToolCalls) {
    const GenerationRequest request;
    const ordered_json choice =
        ChatResponse(request, demo_tokenizer(), head)
            .whole({answer(FinishReason::eos)},
                   {{.calls = {{.id = "a", .name = "f", .arguments = "{}"}}}})
            .at("choices")[0];
    EXPECT_EQ(choice.at("finish_reason"), "tool_calls");
    EXPECT_EQ(choice.at("message"), json(R"({"role": "assistant", "content": null, "tool_calls":
        [{"type": "function", "function": {"name": "f", "arguments": "{}"}, "id": "a"}]})"));
}

TEST(ChatResponses, TellProbabilitiesWhereTheyAreAskedFor) {
    const GenerationRequest request{.n_probs = 0};
    const ordered_json choice = ChatResponse(request, demo_tokenizer(), head)
                                    .whole({answer(FinishReason::eos)}, {{.content = "h"}})
                                    .at("choices")[0];
    EXPECT_EQ(choice.at("logprobs").at("content")[0].at("token"), "h");
    EXPECT_EQ(choice.at("logprobs").at("content")[0].at("top_logprobs"), json("[]"));
}

TEST(ChatChunks, BeginWithTheRoleAndEndWithTheReason) {
    const GenerationRequest request{.stream = true};
    const ChatResponse response(request, demo_tokenizer(), head);
    EXPECT_EQ(response.begin(1), json(R"({"choices": [{"finish_reason": null, "index": 1, "delta":
        {"role": "assistant", "content": null}}], "created": 7, "id": "chatcmpl-x",
        "model": "tiny", "system_fingerprint": "pleat-0-abc", "object": "chat.completion.chunk"})"));
    const ordered_json end = response.end(1, {.reason = FinishReason::eos}, false);
    EXPECT_EQ(end.at("choices"), json(R"([{"finish_reason": "stop", "index": 1, "delta": {}}])"));
    EXPECT_TRUE(end.contains("timings"));
    EXPECT_EQ(
        response.end(0, {.reason = FinishReason::eos}, true).at("choices")[0].at("finish_reason"),
        "tool_calls");
}

TEST(ChatChunks, TellWhatCame) {
    const GenerationRequest request{.stream = true};
    const ChatResponse response(request, demo_tokenizer(), head);
    const auto delta = [&](const ChatDelta& it) {
        return response.part(0, it, {}, {}).at("choices")[0].at("delta");
    };
    EXPECT_EQ(delta({.content = "hi"}), json(R"({"content": "hi"})"));
    EXPECT_EQ(delta({.reasoning = "hm"}), json(R"({"reasoning_content": "hm"})"));
    EXPECT_EQ(delta({.calls = {{.index = 1, .id = "a", .name = "f"}}}),
              json(R"({"tool_calls": [{"index": 1, "id": "a", "type": "function",
                       "function": {"name": "f", "arguments": ""}}]})"));
    EXPECT_EQ(delta({.calls = {{.index = 1, .arguments = "{}"}}}),
              json(R"({"tool_calls": [{"index": 1, "function": {"arguments": "{}"}}]})"));
}

TEST(ChatChunks, HaveTimingsOnceWhenUsageComesLast) {
    const GenerationRequest request{.stream = true, .include_usage = true};
    const ChatResponse response(request, demo_tokenizer(), head);
    EXPECT_FALSE(response.end(0, {}, false).contains("timings"));
    const ordered_json usage = response.usage({{.n_prompt = 3, .n_predicted = 2}});
    EXPECT_EQ(usage.at("choices"), json("[]"));
    EXPECT_EQ(usage.at("usage").at("total_tokens"), 5);
    EXPECT_TRUE(usage.contains("timings"));
}

TEST(ChatChunks, HaveTimingsPerTokenWhereTheyAreAskedFor) {
    const GenerationRequest request{.stream = true, .timings_per_token = true};
    const ordered_json part = ChatResponse(request, demo_tokenizer(), head)
                                  .part(0, {.content = "h"}, {}, {.n_predicted = 4});
    EXPECT_EQ(part.at("timings").at("predicted_n"), 4);
}

}  // namespace
}  // namespace pleat
