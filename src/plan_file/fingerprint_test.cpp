#include "plan_file/fingerprint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "plan/test_shapes.h"

namespace pleat {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::string hash_a(64, 'a');
const std::string hash_b(64, 'b');

Fingerprint tiny(const std::function<void(Fingerprint&)>& change = [](Fingerprint&) {}) {
    Fingerprint made = shape_fingerprint(llama_shape());
    made.tokenizer_sha256 = hash_a;
    made.tensor_types = "f32:65 q4_K:193";
    made.tensor_types_sha256 = hash_a;
    made.content_sha256 = hash_a;
    made.name = "tiny";
    change(made);
    return made;
}

std::string error(const std::function<void(Fingerprint&)>& change) {
    return error_of([&] { check_model(tiny(change), tiny(), "deep.json"); });
}

TEST(CheckModel, TakesTheModelThatTheProfileWasMadeFor) {
    EXPECT_THAT(check_model(tiny(), tiny(), "p", ProfileCheck::strict), IsEmpty());
}

TEST(CheckModel, RefusesAnotherShapeOrTokenizerByField) {
    EXPECT_EQ(error([](Fingerprint& it) { it.architecture = "qwen3"; }),
              "deep.json: made for the architecture qwen3, this model is llama (field "
              "model.architecture)");
    EXPECT_EQ(error([](Fingerprint& it) { it.n_layer = 48; }),
              "deep.json: made for 48 layers, this model has 64 (field model.n_layer)");
    EXPECT_EQ(error([](Fingerprint& it) { it.n_embd = 128; }),
              "deep.json: made for 128 values per hidden state, this model has 256 (field "
              "model.n_embd)");
    EXPECT_EQ(error([](Fingerprint& it) { it.n_vocab = 4294967808; }),
              "deep.json: made for 4294967808 tokens in the vocabulary, this model has 512 (field "
              "model.n_vocab)");
    EXPECT_EQ(error([](Fingerprint& it) { it.tokenizer_sha256 = hash_b; }),
              "deep.json: made for the tokenizer bbbbbbbbbbbb, this model has aaaaaaaaaaaa (field "
              "model.tokenizer_sha256)");
}

TEST(CheckModel, WarnsOfAnotherModelOfTheSameShapeAndStrictRefusesIt) {
    struct Case {
        std::function<void(Fingerprint&)> change;
        std::string warning;
    };
    const std::vector<Case> cases{
        {[](Fingerprint& it) { it.n_layer_nextn = 1; },
         "deep.json: made for 1 MTP layers, this model has 0 (field model.n_layer_nextn)"},
        {[](Fingerprint& it) {
             it.tensor_types = "f32:65 q8_0:193";
             it.tensor_types_sha256 = hash_b;
             it.content_sha256 = hash_b;  // of other types: no word about the weights
         },
         "deep.json: made for the tensor types f32:65 q8_0:193 (bbbbbbbbbbbb), this model has "
         "f32:65 q4_K:193 (aaaaaaaaaaaa) (field model.tensor_types_sha256)"},
        {[](Fingerprint& it) {
             it.content_sha256 = hash_b;
             it.name = "tuned";
         },
         "deep.json: made for other weights of this shape (tuned, bbbbbbbbbbbb), this model has "
         "tiny, aaaaaaaaaaaa (field model.content_sha256)"},
    };
    for (const Case& it : cases) {
        EXPECT_THAT(check_model(tiny(it.change), tiny(), "deep.json"), ElementsAre(it.warning));
        EXPECT_EQ(error_of([&] {
                      check_model(tiny(it.change), tiny(), "deep.json", ProfileCheck::strict);
                  }),
                  it.warning + "; --strict-profile takes no other model");
    }
}

TEST(CheckModel, ANameIsForPeople) {
    EXPECT_THAT(check_model(tiny([](Fingerprint& it) {
                                it.name = "other";
                                it.file_type = "Q4_0";
                            }),
                            tiny(), "p", ProfileCheck::strict),
                IsEmpty());
}

TEST(CheckModel, WhatWasNotStatedIsNotCompared) {
    EXPECT_THAT(
        check_model({.architecture = "llama", .n_layer = 64}, tiny(), "p", ProfileCheck::strict),
        IsEmpty());
    EXPECT_FALSE((Fingerprint{.architecture = "llama", .n_layer = 64}.has_hashes()));
    EXPECT_TRUE(tiny().has_hashes());
}

}  // namespace
}  // namespace pleat
