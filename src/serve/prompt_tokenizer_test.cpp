#include "serve/prompt_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "generate/prompt.h"
#include "gguf/file.h"
#include "gguf/writer.h"
#include "serve/demo_prompts_for_test.h"
#include "serve/request_error_for_test.h"
#include "support/temp_file.h"

namespace pleat {
namespace {

using test::demo_prompts;
using test::demo_tokenizer;
using test::refusal_of;
using test::still_there;
using testing::AllOf;
using testing::HasSubstr;

std::string repeated(std::string_view text, size_t n) {
    std::string all;
    for (size_t i = 0; i < n; ++i) all += text;
    return all;
}

/// Long enough to be tokenized in pieces.
std::string random_chat(uint32_t seed, std::initializer_list<const char*> words) {
    std::mt19937 random(seed);
    std::string text;
    while (text.size() < (20 << 10)) text += *(words.begin() + random() % words.size());
    return text;
}

/// A SentencePiece vocabulary, which puts a space before a text and after each special token, of a
/// model of this name: those of phi-3 have control tokens that take the space after them.
Tokenizer sentence_pieces(const std::string& model_name, bool add_eos) {
    std::vector<std::string> tokens{"<unk>", "<s>", "</s>"};
    std::vector<int32_t> types{2, 3, 3};
    for (int byte = 0; byte < 256; ++byte) {
        tokens.push_back(fmt::format("<0x{:02X}>", byte));
        types.push_back(6);
    }
    for (const char* piece : {"\u2581", "t", "h", "e", "a", "c", "\u2581t", "he", "\u2581the"}) {
        tokens.emplace_back(piece);
        types.push_back(1);
    }
    for (const char* special :
         {"<|end|>", "<|user|>", "<|endoftext|>", "<tool>", "\n\n", "\n\n\n"}) {
        tokens.emplace_back(special);
        types.push_back(special[1] == '|' ? 3 : 4);
    }
    std::vector<float> scores;
    for (size_t i = 0; i < tokens.size(); ++i) scores.push_back(-static_cast<float>(i));
    std::vector<gguf::KeyValue> metadata =
        gguf::File::open(PLEAT_MODELS_DIR "/pleat-demo-llama-16L-q4_0.gguf").metadata();
    std::erase_if(metadata, [](const gguf::KeyValue& it) {
        return it.key.starts_with("tokenizer.") || it.key == "general.name";
    });
    const auto array = [](gguf::ValueType type, auto items) {
        return gguf::Array{.type = type, .items = std::move(items)};
    };
    metadata.push_back({"general.name", model_name});
    metadata.push_back({"tokenizer.ggml.model", std::string("llama")});
    metadata.push_back({"tokenizer.ggml.tokens", array(gguf::ValueType::string, tokens)});
    metadata.push_back({"tokenizer.ggml.scores", array(gguf::ValueType::f32, scores)});
    metadata.push_back({"tokenizer.ggml.token_type", array(gguf::ValueType::i32, types)});
    metadata.push_back({"tokenizer.ggml.bos_token_id", uint32_t{1}});
    metadata.push_back({"tokenizer.ggml.eos_token_id", uint32_t{2}});
    metadata.push_back({"tokenizer.ggml.add_bos_token", true});
    metadata.push_back({"tokenizer.ggml.add_eos_token", add_eos});
    const test::TempFile file(".gguf");
    gguf::write(file.path(), metadata, {});
    return Tokenizer::open(file.path());
}

void expect_same_tokens(const Tokenizer& whole, const PromptTokenizer& prompts) {
    for (uint32_t seed = 0; seed < 3; ++seed) {
        SCOPED_TRACE(seed);
        const std::string text =
            random_chat(seed, {"<|end|>", "<|user|>", "<|assistant|>", "<tool>", "<|", "end|>", " ",
                               "\n", "the cat", "h\u00e9", "<|end|", "<s>", "</s>"});
        EXPECT_LE(prompts.least_tokens(text), whole.tokenize(text, false, true).size());
        EXPECT_EQ(prompts.beginning(text, still_there), prompt_tokens(whole, text));
        EXPECT_EQ(prompts.rendered("<s>" + text, still_there),
                  rendered_prompt_tokens(whole, "<s>" + text));
        for (const bool special : {true, false}) {
            for (const bool around : {true, false}) {
                EXPECT_EQ(prompts.tokenize(text, around, special, still_there),
                          whole.tokenize(text, around, special));
            }
        }
    }
}

TEST(PromptTokenizer, GivesTheTokensOfTheWholeTextWhateverItsPieces) {
    expect_same_tokens(demo_tokenizer(), demo_prompts());
}

TEST(PromptTokenizer, GivesThemOfSentencePieces) {
    for (const bool add_eos : {false, true}) {
        for (const char* name : {"llama", "phi-3"}) {
            SCOPED_TRACE(name);
            const Tokenizer whole = sentence_pieces(name, add_eos);
            expect_same_tokens(whole, PromptTokenizer(whole, 1 << 20));
        }
    }
}

TEST(PromptTokenizer, CountsTokensThatThereAreAtLeast) {
    const Tokenizer& whole = demo_tokenizer();
    EXPECT_EQ(demo_prompts().least_tokens(""), 0U);
    EXPECT_EQ(demo_prompts().least_tokens("a"), 1U);
    EXPECT_EQ(demo_prompts().least_tokens("<|end|>"), 1U);
    EXPECT_EQ(demo_prompts().least_tokens("a<|end|><|end|>b"), 3U);
    for (uint32_t seed = 0; seed < 8; ++seed) {
        const std::string text = random_chat(seed, {"<|end|>", "<|user|>", "<|", " the", "a", " "});
        EXPECT_LE(demo_prompts().least_tokens(text), whole.tokenize(text, false, true).size());
    }
}

TEST(PromptTokenizer, RefusesWhatCannotFitWithBothNumbers) {
    const PromptTokenizer prompts(demo_tokenizer(), 100);
    const std::string specials = repeated("a<|end|>", 101);
    const std::string text = repeated("the cat ", 1000);
    for (const std::string& too_long : {specials, text}) {
        const test::Refusal refusal = refusal_of([&] { prompts.beginning(too_long, still_there); });
        EXPECT_EQ(refusal.status, 400);
        EXPECT_THAT(refusal.message, AllOf(HasSubstr(std::to_string(too_long.size()) + " bytes"),
                                           HasSubstr("the context holds 100")));
        EXPECT_EQ(refusal_of([&] { prompts.rendered(too_long, still_there); }).status, 400);
        EXPECT_EQ(refusal_of([&] { prompts.continuation(too_long, 0, still_there); }).status, 400);
        EXPECT_FALSE(prompts.tokenize(too_long, false, true, still_there).empty());
    }
    EXPECT_EQ(prompts.beginning(repeated("<|end|>", 99), still_there).size(), 100U);
    EXPECT_EQ(refusal_of([&] { prompts.continuation("<|end|>", 100, still_there); }).status, 400);
}

TEST(PromptTokenizer, IsLinearInTheNumberOfSpecialTokens) {
    // In one piece this takes minutes.
    const std::string text = repeated("a<|end|>", 1 << 16);
    EXPECT_EQ(demo_prompts().beginning(text, still_there).size(), (2U << 16) + 1);
}

TEST(PromptTokenizer, GivesUpLongTextsOnceNobodyWaits) {
    const std::string text = repeated("a<|end|>", 1 << 12);
    int asked = 0;
    const ClientGone gone = [&] { return ++asked == 3; };
    EXPECT_EQ(refusal_of([&] { demo_prompts().beginning(text, gone); }).status, 499);
    EXPECT_EQ(asked, 3) << "between two pieces";
    const PromptTokenizer ending(demo_tokenizer(), 1 << 20, [] { return true; });
    EXPECT_EQ(refusal_of([&] { ending.beginning(text, still_there); }).status, 503);
    EXPECT_FALSE(ending.beginning("short", still_there).empty());
}

}  // namespace
}  // namespace pleat
