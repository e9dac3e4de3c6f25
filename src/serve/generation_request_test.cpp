#include "serve/generation_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/demo_prompts_for_test.h"
#include "serve/request_error_for_test.h"
#include "text/demo_model_for_test.h"

namespace pleat {
namespace {

using nlohmann::ordered_json;
using test::json;
using test::Refusal;
using test::refusal_of;
using testing::ElementsAre;
using testing::HasSubstr;

const ServedModels models({"base", "deep"});
const SamplingParams defaults;

RequestContext context(const RequestLimits& limits = {}) {
    return {.tokenizer = test::demo_tokenizer(),
            .prompts = test::demo_prompts(),
            .models = models,
            .sampling = defaults,
            .n_predict = 33,
            .n_ctx = 8,
            .limits = limits};
}

GenerationRequest read(const std::string& text, const RequestLimits& limits = {}) {
    const ordered_json object = json(text);
    return generation_request(Fields(object), context(limits));
}

Refusal refused(const std::string& text, const RequestLimits& limits = {}) {
    return refusal_of([&] { read(text, limits); });
}

TEST(GenerationRequestFields, HaveDefaults) {
    const GenerationRequest request = read("{}");
    EXPECT_EQ(request.variant, 0U);
    EXPECT_EQ(request.generation, (GenerationParams{.n_predict = 33}));
    EXPECT_EQ(request.n, 1);
    EXPECT_FALSE(request.stream);
    EXPECT_FALSE(request.include_usage);
    EXPECT_EQ(request.n_probs, -1);
    EXPECT_TRUE(request.cache_prompt);
    EXPECT_EQ(request.slot, -1);
    EXPECT_EQ(request.time_limit.count(), 0);
    EXPECT_FALSE(request.return_tokens);
    EXPECT_FALSE(request.timings_per_token);
    EXPECT_THAT(request.response_fields, ElementsAre());
}

TEST(GenerationRequestFields, AreReadIntoTheirMembers) {
    const GenerationRequest request = read(R"({"model": "deep", "n": 2, "stream": true,
        "stream_options": {"include_usage": true}, "n_probs": 3, "cache_prompt": false,
        "id_slot": 1, "t_max_predict_ms": 250, "return_tokens": true, "timings_per_token": true,
        "response_fields": ["content"], "temperature": 0.25})");
    EXPECT_EQ(request.variant, 1U);
    EXPECT_EQ(request.n, 2);
    EXPECT_TRUE(request.stream);
    EXPECT_TRUE(request.include_usage);
    EXPECT_EQ(request.n_probs, 3);
    EXPECT_FALSE(request.cache_prompt);
    EXPECT_EQ(request.slot, 1);
    EXPECT_EQ(request.time_limit.count(), 250);
    EXPECT_TRUE(request.return_tokens);
    EXPECT_TRUE(request.timings_per_token);
    EXPECT_THAT(request.response_fields, ElementsAre("content"));
    EXPECT_EQ(request.generation.sampling.temp, 0.25F);
}

TEST(GenerationRequestFields, AreRefusedByTheirNames) {
    struct Case {
        std::string text;
        std::string param;
    };
    const std::vector<Case> cases{
        {R"({"model": 1})", "model"},
        {R"({"n": 0})", "n"},
        {R"({"n": 65})", "n"},
        {R"({"n_cmpl": 65})", "n_cmpl"},
        {R"({"n": "2"})", "n"},
        {R"({"stream": "yes"})", "stream"},
        {R"({"stream": true, "stream_options": []})", "stream_options"},
        {R"({"stream": true, "stream_options": {"include_usage": 1}})",
         "stream_options.include_usage"},
        {R"({"stream_options": {"include_usage": true}})", "stream_options"},
        {R"({"n_probs": -1})", "n_probs"},
        {R"({"n_probs": 1001})", "n_probs"},
        {R"({"cache_prompt": 0})", "cache_prompt"},
        {R"({"id_slot": -2})", "id_slot"},
        {R"({"id_slot": 1.5})", "id_slot"},
        {R"({"t_max_predict_ms": "1"})", "t_max_predict_ms"},
        {R"({"return_tokens": 1})", "return_tokens"},
        {R"({"timings_per_token": 1})", "timings_per_token"},
        {R"({"response_fields": "content"})", "response_fields"},
        {R"({"response_fields": [1]})", "response_fields[0]"},
        {R"({"n_predict": -2})", "n_predict"},
        {R"({"max_tokens": "x"})", "max_tokens"},
        {R"({"max_tokens": 2147483648})", "max_tokens"},
        {R"({"max_completion_tokens": 9223372036854775808})", "max_completion_tokens"},
        {R"({"n_predict": 3, "max_tokens": -7})", "max_tokens"},
        {R"({"stop": 1})", "stop"},
        {R"({"stop": [1]})", "stop[0]"},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.text);
        EXPECT_EQ(refused(c.text).param, c.param);
    }
}

TEST(GenerationRequestFields, StreamOptionsThatAreNullAreNone) {
    EXPECT_FALSE(read(R"({"stream": false, "stream_options": null})").include_usage);
}

TEST(GenerationRequestFields, LlamaServersLengthGoesBeforeOpenAIs) {
    EXPECT_EQ(read(R"({"max_tokens": 1})").generation.n_predict, 1);
    EXPECT_EQ(read(R"({"max_tokens": 1, "max_completion_tokens": 2})").generation.n_predict, 2);
    EXPECT_EQ(read(R"({"max_tokens": 1, "n_predict": 3})").generation.n_predict, 3);
    EXPECT_EQ(read(R"({"n_predict": -1})").generation.n_predict, -1);
    EXPECT_EQ(read(R"({"max_tokens": null})").generation.n_predict, 33);
}

TEST(GenerationRequestFields, StopIsATextOrSeveral) {
    EXPECT_THAT(read(R"({"stop": "a"})").generation.stops, ElementsAre("a"));
    EXPECT_THAT(read(R"({"stop": ["a", "", "b"]})").generation.stops, ElementsAre("a", "b"));
    EXPECT_THAT(read(R"({"stop": ""})").generation.stops, ElementsAre());
    EXPECT_THAT(refused(R"({"stop": ["a", "b"]})", {.stops = 1}).message,
                HasSubstr("2 elements, at most 1"));
    EXPECT_THAT(refused(R"({"stop": "abc"})", {.stop_bytes = 2}).message,
                HasSubstr("3 bytes, at most 2"));
}

TEST(Jobs, AreNForEachPromptWithSeedsOfTheirOwn) {
    const GenerationRequest request =
        read(R"({"model": "deep", "n": 2, "seed": 4294967294, "n_probs": 1, "id_slot": 0,
                 "cache_prompt": false, "t_max_predict_ms": 5})");
    const auto jobs = make_jobs(request, {{1, 2}, {3}}, context());
    ASSERT_EQ(jobs.size(), 4U);
    EXPECT_THAT(jobs[1]->request().prompt, ElementsAre(1, 2));
    EXPECT_THAT(jobs[2]->request().prompt, ElementsAre(3));
    EXPECT_EQ(jobs[0]->request().generation.sampling.seed, 4294967294U);
    EXPECT_EQ(jobs[1]->request().generation.sampling.seed, 0U);  // never the random one
    EXPECT_EQ(jobs[2]->request().generation.sampling.seed, 4294967294U);
    const JobRequest& job = jobs[3]->request();
    EXPECT_EQ(job.kind, JobRequest::Kind::completion);
    EXPECT_EQ(job.variant, 1U);
    EXPECT_EQ(job.n_probs, 1);
    EXPECT_EQ(job.slot, 0);
    EXPECT_FALSE(job.cache_prompt);
    EXPECT_EQ(job.time_limit.count(), 5);
}

TEST(Jobs, WithoutASeedAreAllRandom) {
    for (const auto& job : make_jobs(read(R"({"n": 3})"), {{1}}, context())) {
        EXPECT_EQ(job->request().generation.sampling.seed, SamplingParams::random_seed);
    }
}

TEST(Jobs, AreBounded) {
    const RequestLimits limits{.choices = 3};
    EXPECT_NO_THROW(make_jobs(read(R"({"n": 3})"), {{1}}, context(limits)));
    EXPECT_EQ(refusal_of([&] {
                  make_jobs(read(R"({"n": 2})"), {{1}, {2}}, context(limits));
              }).param,
              "n");
}

TEST(Jobs, OfAPromptThatIsTooLongAreRefusedWithBothNumbers) {
    EXPECT_NO_THROW(make_jobs(read("{}"), {std::vector<int32_t>(7)}, context()));
    try {
        make_jobs(read("{}"), {std::vector<int32_t>(8)}, context());
        FAIL() << "eight tokens leave no room in eight";
    } catch (const RequestError& e) {
        const ordered_json error = e.body().at("error");
        EXPECT_EQ(error.at("code"), 400);
        EXPECT_EQ(error.at("type"), "exceed_context_size_error");
        EXPECT_EQ(error.at("n_prompt_tokens"), 8);
        EXPECT_EQ(error.at("n_ctx"), 8);
        EXPECT_THAT(e.what(), HasSubstr("8 tokens, and the context holds 8"));
    }
}

TEST(GenerationSettings, TellWhatWasAskedFor) {
    const GenerationRequest request =
        read(R"({"max_tokens": 5, "stop": ["x"], "logit_bias": [[3, false], [4, 1]], "top_k": 3})");
    const ordered_json settings = generation_settings_json(request.generation, -1, true);
    EXPECT_EQ(settings.at("n_predict"), 5);
    EXPECT_EQ(settings.at("max_tokens"), 5);
    EXPECT_EQ(settings.at("stop"), json(R"(["x"])"));
    EXPECT_EQ(settings.at("logit_bias"),
              json(R"([{"bias":false,"token":3},{"bias":1.0,"token":4}])"));
    EXPECT_EQ(settings.at("top_k"), 3);
    EXPECT_EQ(settings.at("n_probs"), 0);
    EXPECT_EQ(settings.at("stream"), true);
}

}  // namespace
}  // namespace pleat
