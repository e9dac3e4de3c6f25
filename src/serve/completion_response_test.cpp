#include "serve/completion_response.h"

#include <gtest/gtest.h>

#include "serve/request_error_for_test.h"
#include "text/demo_model_for_test.h"

namespace pleat {
namespace {

using nlohmann::ordered_json;
using test::demo_tokenizer;
using test::json;

const AnswerHead head{.id = "cmpl-x", .created = 7, .model = "tiny", .fingerprint = "pleat-0-abc"};

JobRequest job(int n_probs = -1) {
    return {.prompt = {1018, 104}, .generation = {.n_predict = 2}, .n_probs = n_probs};
}

Answer answer() {
    return {.text = "i\n",
            .tokens = {{.drawn = {.token = 105, .logprob = -0.25F}},
                       {.drawn = {.token = 1021, .logprob = -0.5F}}},
            .result = {.reason = FinishReason::eos,
                       .seed = 9,
                       .slot = 3,
                       .timings = {.n_prompt = 2, .n_cached = 1, .n_predicted = 2}}};
}

TEST(CompletionAnswer, HasLlamaServersMembers) {
    const GenerationRequest request;
    const ordered_json whole =
        CompletionResponse(request, demo_tokenizer(), head).whole(1, job(), answer());
    ordered_json rest = whole;
    for (const char* const checked_elsewhere : {"timings", "generation_settings"}) {
        EXPECT_TRUE(rest.at(checked_elsewhere).is_object());
        rest.erase(checked_elsewhere);
    }
    EXPECT_EQ(rest, json(R"({"index": 1, "content": "i\n", "tokens": [], "id_slot": 3,
        "stop": true, "model": "tiny", "system_fingerprint": "pleat-0-abc", "tokens_predicted": 2,
        "tokens_evaluated": 2, "prompt": "<|endoftext|>h", "has_new_line": true,
        "truncated": false, "stop_type": "eos", "stopping_word": "", "tokens_cached": 3})"));
    EXPECT_EQ(whole.at("generation_settings").at("seed"), 9);
}

TEST(CompletionAnswer, TellsTokensAndProbabilitiesWhereTheyAreAskedFor) {
    const GenerationRequest request{.return_tokens = true};
    const ordered_json whole =
        CompletionResponse(request, demo_tokenizer(), head).whole(0, job(0), answer());
    EXPECT_EQ(whole.at("tokens"), json("[105, 1021]"));
    ASSERT_EQ(whole.at("completion_probabilities").size(), 2U);
    EXPECT_EQ(whole.at("completion_probabilities")[0].at("logprob"), -0.25);
}

TEST(CompletionAnswer, AtTheEndOfAStreamDoesNotRepeatWhatCameBefore) {
    const GenerationRequest request{.stream = true, .return_tokens = true};
    const ordered_json whole =
        CompletionResponse(request, demo_tokenizer(), head).whole(0, job(0), answer());
    EXPECT_EQ(whole.at("content"), "");
    EXPECT_EQ(whole.at("tokens"), json("[]"));
    EXPECT_FALSE(whole.contains("completion_probabilities"));
    EXPECT_EQ(whole.at("has_new_line"), true);
}

TEST(CompletionAnswer, TellsWhatEndedIt) {
    Answer it = answer();
    const auto told = [&](const char* member) {
        const GenerationRequest request;
        return CompletionResponse(request, demo_tokenizer(), head).whole(0, job(), it).at(member);
    };
    it.result.reason = FinishReason::stop_string;
    it.result.stop = "END";
    EXPECT_EQ(told("stop_type"), "word");
    EXPECT_EQ(told("stopping_word"), "END");
    it.result = {.reason = FinishReason::context};
    EXPECT_EQ(told("stop_type"), "limit");
    EXPECT_EQ(told("truncated"), true);
    EXPECT_EQ(told("tokens_cached"), 0);
}

TEST(CompletionEvents, HaveWhatHappened) {
    GenerationRequest request{.stream = true};
    const JobEvent event{.text = "i",
                         .tokens = {{.drawn = {.token = 105, .logprob = -0.25F}}},
                         .timings = {.n_prompt = 2, .n_predicted = 4}};
    const CompletionResponse response(request, demo_tokenizer(), head);
    EXPECT_EQ(response.part(1, job(), event, event.tokens),
              json(R"({"index": 1, "content": "i", "tokens": [105], "stop": false, "id_slot": -1,
                       "tokens_predicted": 4, "tokens_evaluated": 2})"));
    request.timings_per_token = true;
    const ordered_json part = response.part(1, job(0), event, event.tokens);
    EXPECT_EQ(part.at("timings").at("predicted_n"), 4);
    EXPECT_EQ(part.at("completion_probabilities")[0].at("id"), 105);
}

TEST(SelectedFields, AreThoseNamedAlsoInside) {
    const ordered_json object = json(R"({"a": 1, "b": {"c": 2, "d": {"e": 3}}, "f": [4]})");
    EXPECT_EQ(selected_fields(object, {}), object);
    EXPECT_EQ(selected_fields(object, {"b/c", "a"}), json(R"({"b/c": 2, "a": 1})"));
    EXPECT_EQ(selected_fields(object, {"b/d/e"}), json(R"({"b/d/e": 3})"));
    EXPECT_EQ(selected_fields(object, {"x", "a/b", "f/0", "b/x/y"}), ordered_json::object());
}

}  // namespace
}  // namespace pleat
