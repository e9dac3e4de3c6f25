#include "serve/embeddings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/demo_prompts_for_test.h"
#include "serve/request_error_for_test.h"
#include "text/demo_model_for_test.h"

namespace pleat {
namespace {

using nlohmann::ordered_json;
using test::json;
using test::refusal_of;
using testing::ElementsAre;
using testing::FloatNear;

const ServedModels models({"base", "deep"});
const SamplingParams sampling;

EmbeddingRequest read(const std::string& text) {
    const ordered_json object = json(text);
    const RequestContext context{.tokenizer = test::demo_tokenizer(),
                                 .prompts = test::demo_prompts(),
                                 .models = models,
                                 .sampling = sampling,
                                 .n_ctx = 8};
    return embedding_request(Fields(object), context, 192);
}

TEST(EmbeddingRequests, AreRead) {
    const EmbeddingRequest request = read(R"({"model": "deep", "input": [[1, 2], [3]],
        "encoding_format": "base64", "embd_normalize": -1, "dimensions": 192})");
    EXPECT_EQ(request.variant, 1U);
    EXPECT_THAT(request.prompts, ElementsAre(ElementsAre(1, 2), ElementsAre(3)));
    EXPECT_EQ(request.normalize, -1);
    EXPECT_TRUE(request.base64);
    EXPECT_EQ(read(R"({"content": [5]})").prompts, (std::vector<std::vector<int32_t>>{{5}}));
    EXPECT_EQ(read(R"({"input": [5]})").normalize, 2);
}

TEST(EmbeddingRequests, NameWhatIsWrong) {
    EXPECT_EQ(refusal_of([] { read("{}"); }).param, "input");
    EXPECT_EQ(refusal_of([] { read(R"({"input": 1})"); }).param, "input");
    EXPECT_EQ(refusal_of([] { read(R"({"content": {}})"); }).param, "content.prompt_string");
    EXPECT_EQ(refusal_of([] { read(R"({"input": [1], "encoding_format": "hex"})"); }).param,
              "encoding_format");
    EXPECT_EQ(refusal_of([] { read(R"({"input": [1], "dimensions": 64})"); }).param, "dimensions");
    EXPECT_EQ(refusal_of([] { read(R"({"input": [1], "embd_normalize": -2})"); }).param,
              "embd_normalize");
    EXPECT_EQ(refusal_of([] { read(R"({"input": [1], "model": "x"})"); }).status, 404);
}

TEST(EmbeddingRequests, BecomeOneJobForEachInput) {
    const auto jobs = embedding_jobs(read(R"({"input": [[1, 2], [3]]})"), 8);
    ASSERT_EQ(jobs.size(), 2U);
    EXPECT_EQ(jobs[0]->request().kind, JobRequest::Kind::embedding);
    EXPECT_THAT(jobs[0]->request().prompt, ElementsAre(1, 2));
    const EmbeddingRequest nine{.prompts = {std::vector<int32_t>(9)}};
    EXPECT_EQ(refusal_of([&] { embedding_jobs(nine, 8); }).param, "input");
}

TEST(NormalizedEmbeddings, AreAsLlamaCppHasThem) {
    const std::vector<float> v{3.0F, -4.0F};
    const auto near = [](float x) { return FloatNear(x, 1e-6F); };
    EXPECT_THAT(normalized(v, -1), ElementsAre(3.0F, -4.0F));
    EXPECT_THAT(normalized(v, 2), ElementsAre(near(0.6F), near(-0.8F)));
    EXPECT_THAT(normalized(v, 1), ElementsAre(near(3.0F / 7), near(-4.0F / 7)));
    EXPECT_THAT(normalized(v, 0), ElementsAre(FloatNear(24570, 0.1F), FloatNear(-32760, 0.1F)));
    const auto cubic = normalized(v, 3);
    EXPECT_NEAR(cubic[0], 3 / std::cbrt(91.0), 1e-6);
    EXPECT_THAT(normalized(std::vector<float>{0, 0}, 2), ElementsAre(0.0F, 0.0F));
}

TEST(EmbeddingAnswers, AreNormalizedRowsInOpenAIsForm) {
    const JobResult result{.timings = {.n_prompt = 4}, .embeddings = {{3.0F, 4.0F}}};
    const ordered_json answer = openai_embeddings_json({}, {result, result}, "tiny");
    EXPECT_EQ(answer.at("model"), "tiny");
    EXPECT_EQ(answer.at("object"), "list");
    EXPECT_EQ(answer.at("usage"), json(R"({"prompt_tokens": 8, "total_tokens": 8})"));
    ASSERT_EQ(answer.at("data").size(), 2U);
    EXPECT_EQ(answer.at("data")[1].at("index"), 1);
    EXPECT_EQ(answer.at("data")[1].at("object"), "embedding");
    EXPECT_NEAR(answer.at("data")[1].at("embedding")[0].get<float>(), 0.6F, 1e-6);
}

TEST(EmbeddingAnswers, AreBytesInBase64) {
    const JobResult result{.embeddings = {{1.0F, 0.0F}}};
    const ordered_json answer = openai_embeddings_json({.base64 = true}, {result}, "tiny");
    EXPECT_EQ(answer.at("data")[0].at("embedding"), "AACAPwAAAAA=");
}

TEST(EmbeddingAnswers, OfLlamaServerAreRowsAsTheyAreWithoutPooling) {
    const JobResult result{.embeddings = {{3.0F, 4.0F}, {6.0F, 8.0F}}};
    EXPECT_EQ(embeddings_json({}, {result}, false),
              json(R"([{"index": 0, "embedding": [[3.0, 4.0], [6.0, 8.0]]}])"));
    EXPECT_EQ(embeddings_json({.normalize = -1}, {{.embeddings = {{3.0F}}}}, true),
              json(R"([{"index": 0, "embedding": [[3.0]]}])"));
}

TEST(Base64, HasTheTestVectorsOfItsRfc) {
    const auto text = [](std::string_view it) {
        return base64_text(std::as_bytes(std::span(it.data(), it.size())));
    };
    EXPECT_EQ(text(""), "");
    EXPECT_EQ(text("f"), "Zg==");
    EXPECT_EQ(text("fo"), "Zm8=");
    EXPECT_EQ(text("foo"), "Zm9v");
    EXPECT_EQ(text("foob"), "Zm9vYg==");
    EXPECT_EQ(text("fooba"), "Zm9vYmE=");
    EXPECT_EQ(text("foobar"), "Zm9vYmFy");
}

}  // namespace
}  // namespace pleat
