#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "gguf/file.h"
#include "gguf/writer.h"
#include "text/demo_model_for_test.h"

namespace pleat {
namespace {

using test::demo_tokenizer;
using test::message_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string temp_path(const std::string& name) {
    return testing::TempDir() + "pleat_" + std::to_string(getpid()) + "_" + name;
}

/// The demo model's metadata without tensors, changed by `change`.
std::string demo_header(const std::string& name,
                        const std::function<void(std::vector<gguf::KeyValue>&)>& change) {
    std::vector<gguf::KeyValue> metadata =
        gguf::File::open(PLEAT_MODELS_DIR "/pleat-demo-llama-16L-q4_0.gguf").metadata();
    change(metadata);
    const std::string path = temp_path(name);
    gguf::write(path, metadata, {});
    return path;
}

TEST(Tokenizer, GivesTheTokensThatStockGives) {  // llama-tokenize of the same release
    EXPECT_THAT(demo_tokenizer().tokenize("Hello, world! 12 + 30 = 42", true, false),
                ElementsAre(1018, 72, 334, 111, 44, 392, 363, 33, 32, 49, 50, 291, 32, 51, 48, 281,
                            32, 52, 50));
}

TEST(Tokenizer, AddsSpecialTokensOnlyWhenAsked) {
    const Tokenizer& t = demo_tokenizer();
    EXPECT_TRUE(t.add_bos());
    EXPECT_FALSE(t.add_eos());
    EXPECT_THAT(t.tokenize("", true, false), ElementsAre(t.bos()));
    EXPECT_THAT(t.tokenize("", false, false), IsEmpty());
}

TEST(Tokenizer, ReadsNamesOfControlTokensOnlyWhenAsked) {
    const Tokenizer& t = demo_tokenizer();
    EXPECT_THAT(t.tokenize("<|end|>", false, true), ElementsAre(t.eot()));
    EXPECT_GT(t.tokenize("<|end|>", false, false).size(), 1U);
}

TEST(Tokenizer, KnowsWhatTheFileSays) {
    const Tokenizer& t = demo_tokenizer();
    EXPECT_EQ(t.n_vocab(), 1024);
    EXPECT_EQ(t.bos(), 1018);
    EXPECT_EQ(t.eos(), 1021);
    EXPECT_EQ(t.eot(), 1021);
    EXPECT_TRUE(t.is_eog(1021));
    EXPECT_FALSE(t.is_eog(72));
    EXPECT_THAT(t.eog_tokens(), testing::Contains(1021));
    EXPECT_THAT(t.suppressed_tokens(), IsEmpty());
    EXPECT_THAT(t.chat_template(), HasSubstr("add_generation_prompt"));
}

TEST(Tokenizer, GivesControlTokensTextOnlyWhenAsked) {
    const Tokenizer& t = demo_tokenizer();
    EXPECT_EQ(t.piece(72, false), "H");
    EXPECT_EQ(t.piece(1021, false), "");
    EXPECT_EQ(t.piece(1021, true), "<|end|>");
}

TEST(Tokenizer, GivesTheRawBytesOfAPartOfACharacter) {
    const Tokenizer& t = demo_tokenizer();
    std::string bytes;
    const auto tokens = t.tokenize("\xF0\x9F\x99\x82", false, false);
    for (const int32_t token : tokens) bytes += t.piece(token, false);
    EXPECT_GT(tokens.size(), 1U);
    EXPECT_EQ(bytes, "\xF0\x9F\x99\x82");
}

TEST(TokenizerProperty, DetokenizingGivesTheTextBack) {
    const std::vector<std::string> parts{"The",  " cat", "\n\n", "  ",  "é",
                                         "日本", "42",   "'s",   "🙂"};
    for (uint32_t seed = 0; seed < 300; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 rng(seed);
        std::string text;
        for (uint32_t i = rng() % 20; i > 0; --i) text += parts[rng() % parts.size()];
        const auto tokens = demo_tokenizer().tokenize(text, false, false);
        EXPECT_EQ(demo_tokenizer().detokenize(tokens, false), text);
    }
}

TEST(TokenizerAbuse, AcceptsBytesThatAreNoUtf8) {
    for (uint32_t seed = 0; seed < 300; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 rng(seed);
        std::string text(rng() % 50, '\0');
        for (char& c : text) c = static_cast<char>(rng());
        try {
            for (const int32_t token : demo_tokenizer().tokenize(text, true, true)) {
                EXPECT_TRUE(demo_tokenizer().valid(token));
            }
        } catch (const Error&) {  // also an answer
        }
    }
}

TEST(TokenizerAbuse, RefusesTokensThatDoNotExist) {
    const Tokenizer& t = demo_tokenizer();
    for (const int32_t token : {-1, -1000, 1024, 2147483647}) {
        EXPECT_THAT(message_of([&] { t.piece(token, true); }),
                    HasSubstr("is not in the vocabulary: it has 1024 tokens"));
        EXPECT_THAT(message_of([&] {
                        t.detokenize(std::vector<int32_t>{72, token}, true);
                    }),
                    HasSubstr("is not in the vocabulary"));
        EXPECT_FALSE(t.is_eog(token));
    }
}

TEST(TokenizerAbuse, SplitsAVeryLongWord) {
    const std::string text(200'000, 'a');
    const auto tokens = demo_tokenizer().tokenize(text, false, false);
    EXPECT_EQ(demo_tokenizer().detokenize(tokens, false), text);
}

TEST(TokenizerAbuse, RefusesAnEndlessWord) {
    EXPECT_THAT(message_of([] {
                    demo_tokenizer().tokenize(std::string((1 << 20) + 1, 'a'), false, false);
                }),
                HasSubstr("1048577 bytes without a break between words: at most 1048576"));
}

// A pre-tokenizer that libllama splits with std::regex, which recurses once per character.
TEST(TokenizerAbuse, SplitsAVeryLongWordByRegularExpressionsToo) {
    const std::string path = demo_header("regex.gguf", [](auto& metadata) {
        for (auto& [key, value] : metadata) {
            if (key == "tokenizer.ggml.pre") value = std::string("deepseek-coder");
        }
    });
    const Tokenizer tokenizer = Tokenizer::open(path);
    const std::string text(100'000, 'a');
    EXPECT_EQ(tokenizer.detokenize(tokenizer.tokenize(text, false, false), false), text);
    std::filesystem::remove(path);
}

TEST(TokenizerFile, WithoutATokenizerIsSaidToHaveNone) {
    const std::string path = demo_header("none.gguf", [](auto& metadata) {
        std::erase_if(metadata, [](const auto& kv) { return kv.key.starts_with("tokenizer."); });
    });
    const std::string message = message_of([&] { Tokenizer::open(path); });
    EXPECT_THAT(message, testing::StartsWith(path + ": the file has no tokenizer"));
    EXPECT_THAT(message, HasSubstr("inspect"));
    std::filesystem::remove(path);
}

TEST(TokenizerFile, OfAnUnknownKindIsRefusedInOneLine) {
    const std::string path = demo_header("kind.gguf", [](auto& metadata) {
        for (auto& [key, value] : metadata) {
            if (key == "tokenizer.ggml.model") value = std::string("quux");
        }
    });
    EXPECT_THAT(message_of([&] { Tokenizer::open(path); }), HasSubstr("quux"));
    std::filesystem::remove(path);
}

TEST(TokenizerFile, ThatIsNotThereIsNamed) {
    EXPECT_THAT(message_of([] { Tokenizer::open("/nowhere/model.gguf"); }),
                HasSubstr("/nowhere/model.gguf"));
}

TEST(TokenizerFile, WithoutTokensIsRefused) {
    const std::string path = demo_header("empty.gguf", [](auto& metadata) {
        std::erase_if(metadata, [](const auto& kv) { return kv.key == "tokenizer.ggml.tokens"; });
    });
    EXPECT_THAT(message_of([&] { Tokenizer::open(path); }), HasSubstr(path));
    std::filesystem::remove(path);
}

}  // namespace
}  // namespace pleat
