#include "serve/server_state.h"

#include <gtest/gtest.h>

#include "serve/demo_prompts_for_test.h"
#include "serve/request_error_for_test.h"
#include "text/demo_model_for_test.h"

namespace pleat {
namespace {

using nlohmann::ordered_json;
using test::demo_tokenizer;
using test::json;
using test::refusal_of;

ordered_json tokens(const std::string& body) {
    const ordered_json object = json(body);
    const ServedModels models({"base"});
    const SamplingParams sampling;
    return tokenize_json(Fields(object), {.tokenizer = demo_tokenizer(),
                                          .prompts = test::demo_prompts(),
                                          .models = models,
                                          .sampling = sampling,
                                          .limits = {.tokenize_bytes = 100}});
}

ordered_json text(const std::string& body) {
    const ordered_json object = json(body);
    return detokenize_json(Fields(object), demo_tokenizer());
}

TEST(Tokenize, GivesIds) {
    EXPECT_EQ(tokens(R"({"content": "hi"})"), json(R"({"tokens": [104, 105]})"));
    EXPECT_EQ(tokens(R"({"content": "hi", "add_special": true})"),
              json(R"({"tokens": [1018, 104, 105]})"));
    EXPECT_EQ(tokens("{}"), json(R"({"tokens": []})"));
}

TEST(Tokenize, ReadsControlTokensUnlessToldNotTo) {
    EXPECT_EQ(tokens(R"({"content": "<|end|>"})"), json(R"({"tokens": [1021]})"));
    EXPECT_GT(tokens(R"({"content": "<|end|>", "parse_special": false})").at("tokens").size(), 1U);
}

TEST(Tokenize, GivesPiecesAndTheBytesOfHalfCharacters) {
    EXPECT_EQ(tokens(R"({"content": "h\u00e9", "with_pieces": true})"),
              json(R"({"tokens": [{"id": 104, "piece": "h"}, {"id": 195, "piece": [195]},
                                  {"id": 169, "piece": [169]}]})"));
}

TEST(Tokenize, NamesWhatIsWrong) {
    EXPECT_EQ(refusal_of([] { tokens(R"({"content": 1})"); }).param, "content");
    EXPECT_EQ(refusal_of([] { tokens(R"({"content": "a", "with_pieces": 1})"); }).param,
              "with_pieces");
    const test::Refusal refusal =
        refusal_of([] { tokens("{\"content\": \"" + std::string(101, 'a') + "\"}"); });
    EXPECT_EQ(refusal.param, "content");
    EXPECT_EQ(refusal.message, "content: has 101 bytes, at most 100");
}

TEST(Detokenize, IsTheWayBack) {
    EXPECT_EQ(text(R"({"tokens": [104, 195, 169, 1021]})"),
              json("{\"content\": \"h\xC3\xA9<|end|>\"}"));
    EXPECT_EQ(text(R"({"tokens": [195]})"), json("{\"content\": \"\xEF\xBF\xBD\"}"));
    EXPECT_EQ(text("{}"), json(R"({"content": ""})"));
    EXPECT_EQ(refusal_of([] { text(R"({"tokens": [1024]})"); }).param, "tokens");
    EXPECT_EQ(refusal_of([] { text(R"({"tokens": "a"})"); }).param, "tokens");
}

class Slots : public testing::Test {
  protected:
    ordered_json told(bool prompts) const {
        return slots_json(slots, models, demo_tokenizer(), 512, prompts);
    }

    const ServedModels models{{"base", "deep"}};
    const std::shared_ptr<Job> job = std::make_shared<Job>(JobRequest{
        .prompt = {1018, 104, 105}, .generation = {.n_predict = 7, .stops = {"secret"}}});
    const std::vector<SlotState> slots{{.variant = 1,
                                        .id = 3,
                                        .busy = true,
                                        .n_prompt = 9,
                                        .n_prompt_done = 9,
                                        .n_decoded = 2,
                                        .n_cached = 11,
                                        .job = job},
                                       {.variant = 0, .id = 4}};
};

TEST_F(Slots, TellWhatTheyDo) {
    ordered_json list = told(false);
    EXPECT_EQ(list.at(0).at("params").at("n_predict"), 7);
    list.at(0).erase("params");
    EXPECT_EQ(list, json(R"([{"id": 3, "model": "deep", "n_ctx": 512, "speculative": false,
        "is_processing": true, "n_prompt_tokens": 9, "n_prompt_tokens_processed": 9,
        "n_prompt_tokens_cache": 11,
        "next_token": [{"has_next_token": true, "n_remain": 5, "n_decoded": 2}]},
        {"id": 4, "model": "base", "n_ctx": 512, "speculative": false,
        "is_processing": false, "n_prompt_tokens": 0, "n_prompt_tokens_processed": 0,
        "n_prompt_tokens_cache": 0,
        "next_token": [{"has_next_token": false, "n_remain": -1, "n_decoded": 0}]}])"));
}

TEST_F(Slots, TellNoTextOfAnybodysUnlessAsked) {
    EXPECT_EQ(told(false).dump().find("secret"), std::string::npos);
    EXPECT_FALSE(told(false).at(0).contains("prompt"));
    EXPECT_EQ(told(true).at(0).at("prompt"), "<|endoftext|>hi");
    EXPECT_EQ(told(true).at(0).at("params").at("stop"), json(R"(["secret"])"));
}

}  // namespace
}  // namespace pleat
