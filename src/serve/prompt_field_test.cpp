#include "serve/prompt_field.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/demo_prompts_for_test.h"
#include "serve/request_error_for_test.h"
#include "text/demo_model_for_test.h"

namespace pleat {
namespace {

using test::demo_tokenizer;
using test::json;
using test::Refusal;
using test::refusal_of;
using testing::ElementsAre;
using testing::HasSubstr;
using Prompts = std::vector<std::vector<int32_t>>;

constexpr int32_t bos = 1018;

Prompts read(const std::string& value, const RequestLimits& limits = {}) {
    return prompt_field(json(value), "prompt", test::demo_prompts(), test::still_there, limits);
}

Refusal refused(const std::string& value, const RequestLimits& limits = {}) {
    return refusal_of([&] { read(value, limits); });
}

/// Of a text of single bytes in the demo model's vocabulary.
std::vector<int32_t> tokens(const std::string& text) {
    return demo_tokenizer().tokenize(text, false, false);
}

TEST(Prompt, IsATextWithWhatTheFileWantsBeforeIt) {
    std::vector<int32_t> expected{bos};
    for (const int32_t token : tokens("hi")) expected.push_back(token);
    EXPECT_EQ(read("\"hi\""), Prompts{expected});
    EXPECT_EQ(read(R"({"prompt_string": "hi"})"), Prompts{expected});
    EXPECT_EQ(read("\"\""), Prompts{{bos}});
}

TEST(Prompt, IsAListOfTokensAsItIs) { EXPECT_EQ(read("[5, 6.0, 7]"), (Prompts{{5, 6, 7}})); }

TEST(Prompt, MayMixTokensAndTexts) {
    const std::vector<int32_t> hi = tokens("hi");
    EXPECT_EQ(read("[5, \"hi\", 6]"), (Prompts{{5, hi[0], hi[1], 6}}));
    EXPECT_EQ(read("[\"hi\", 6]"), (Prompts{{bos, hi[0], hi[1], 6}}));
}

TEST(Prompt, MayBeSeveral) {
    EXPECT_EQ(read("[[5, 6], \"\", [7]]"), (Prompts{{5, 6}, {bos}, {7}}));
    EXPECT_EQ(read("[\"\"]"), Prompts{{bos}});
    EXPECT_TRUE(has_several_prompts(json("[\"a\", \"b\"]")));
    EXPECT_FALSE(has_several_prompts(json("[\"a\"]")));
    EXPECT_FALSE(has_several_prompts(json("[1, 2]")));
    EXPECT_FALSE(has_several_prompts(json("\"a\"")));
}

TEST(Prompt, ReadsTheNamesOfControlTokens) {
    EXPECT_EQ(read("\"<|end|>\""), (Prompts{{bos, 1021}}));
}

TEST(Prompt, IsRefusedWhereItSaysNothing) {
    struct Case {
        std::string value;
        std::string param;
    };
    const std::vector<Case> cases{
        {"[]", "prompt"},
        {"5", "prompt"},
        {"true", "prompt"},
        {"{}", "prompt.prompt_string"},
        {R"({"prompt_string": 1})", "prompt.prompt_string"},
        {R"({"prompt_string": "a", "multimodal_data": ["x"]})", "prompt.multimodal_data"},
        {"[[]]", "prompt[0]"},
        {"[\"a\", []]", "prompt[1]"},
        {"[null]", "prompt[0]"},
        {"[1024]", "prompt"},
        {"[-1]", "prompt"},
        {"[1.5]", "prompt"},
        {"[4294967297]", "prompt"},
        {"[1, [2]]", "prompt"},
        {"[[1, {}]]", "prompt[0]"},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.value);
        EXPECT_EQ(refused(c.value).param, c.param);
    }
    EXPECT_EQ(refused("[\"a\", \"b\", \"c\"]", {.prompts = 2}).param, "prompt");
    // More than the tokenizer takes without a space.
    const std::string run(Tokenizer::max_run_bytes + 1, 'a');
    EXPECT_EQ(refused("\"" + run + "\"").param, "prompt");
    EXPECT_EQ(refused("[1, \"" + run + "\"]").param, "prompt");
}

TEST(Prompt, OfManyTextsIsRefusedBeforeAllAreTokenized) {
    const PromptTokenizer prompts(demo_tokenizer(), 4);
    const auto read = [&](const std::string& value) {
        return prompt_field(json(value), "prompt", prompts, test::still_there, {});
    };
    EXPECT_EQ(read(R"([5, "a", "b", "c"])")[0].size(), 4U);
    EXPECT_THAT(refusal_of([&] { read(R"([5, "a", "b", "c", "d"])"); }).message,
                HasSubstr("5 tokens or more, and the context holds 4"));
}

}  // namespace
}  // namespace pleat
