#include "serve/served_models.h"

#include <gtest/gtest.h>

#include "serve/request_error_for_test.h"

namespace pleat {
namespace {

using nlohmann::ordered_json;
using test::json;
using test::Refusal;
using test::refusal_of;

size_t find(const ServedModels& models, const std::string& body) {
    const ordered_json object = json(body);
    return models.find(Fields(object));
}

TEST(ServedModels, OneAloneAnswersToAnyName) {
    const ServedModels models({"tiny"});
    EXPECT_EQ(find(models, "{}"), 0U);
    EXPECT_EQ(find(models, R"({"model": "gpt-4"})"), 0U);
}

TEST(ServedModels, OfSeveralEachAnswersToItsOwnNameAndTheFirstToNone) {
    const ServedModels models({"base", "deep"});
    EXPECT_EQ(find(models, "{}"), 0U);
    EXPECT_EQ(find(models, R"({"model": ""})"), 0U);
    EXPECT_EQ(find(models, R"({"model": "base"})"), 0U);
    EXPECT_EQ(find(models, R"({"model": "deep"})"), 1U);
}

TEST(ServedModels, AnUnknownNameIs404WithThoseThereAre) {
    const ServedModels models({"base", "deep"});
    const Refusal refusal = refusal_of([&] { find(models, R"({"model": "Deep"})"); });
    EXPECT_EQ(refusal.status, 404);
    EXPECT_EQ(refusal.param, "model");
    EXPECT_EQ(refusal.message, "there is no model \"Deep\"; there are base, deep");
    EXPECT_EQ(refusal_of([&] { find(models, R"({"model": ["base"]})"); }).status, 400);
}

TEST(ServedModels, AreCalledLikeTheirFile) {
    EXPECT_EQ(model_name_of_path("/models/tiny-q4_0.gguf"), "tiny-q4_0");
    EXPECT_EQ(model_name_of_path("tiny"), "tiny");
    EXPECT_EQ(model_name_of_path("a.b/c"), "c");
}

}  // namespace
}  // namespace pleat
