#include "text/vocab_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "gguf/writer.h"
#include "support/temp_dir.h"
#include "text/tokenizer.h"

namespace pleat {
namespace {

using Metadata = std::vector<gguf::KeyValue>;

gguf::Value& value(Metadata& metadata, const std::string& key) {
    return std::ranges::find(metadata, key, &gguf::KeyValue::key)->value;
}

std::vector<std::string>& tokens(Metadata& metadata) {
    return std::get<std::vector<std::string>>(
        std::get<gguf::Array>(value(metadata, "tokenizer.ggml.tokens")).items);
}

/// What opening the tokenizer of the shipped model says once its metadata was spoilt.
std::string error_of(const std::function<void(Metadata&)>& spoil) {
    const TempDir dir;
    const std::string path = dir.file("spoilt.gguf");
    Metadata metadata =
        gguf::File::open(PLEAT_MODELS_DIR "/pleat-demo-llama-16L-q4_0.gguf").metadata();
    spoil(metadata);
    gguf::write(path, metadata, {});
    try {
        Tokenizer::open(path);
    } catch (const Error& error) {
        const std::string message = error.what();
        return message.starts_with(path + ": ") ? message.substr(path.size() + 2) : message;
    }
    return "no error";
}

TEST(VocabularyCheck, RefusesATokenThatIsThereTwice) {
    EXPECT_EQ(
        error_of([](Metadata& m) { tokens(m)[300] = tokens(m)[301] = "twice"; }),
        "tokens 300 and 301 of key tokenizer.ggml.tokens are both \"twice\", expected each text "
        "once");
}

TEST(VocabularyCheck, RefusesANulByte) {
    EXPECT_EQ(error_of([](Metadata& m) { tokens(m)[300][0] = '\0'; }),
              "token 300 of key tokenizer.ggml.tokens holds a NUL byte");
}

TEST(VocabularyCheck, RefusesTypesThatAreNotOnePerToken) {
    EXPECT_EQ(error_of([](Metadata& m) {
                  auto& types = std::get<gguf::Array>(value(m, "tokenizer.ggml.token_type"));
                  std::get<std::vector<int32_t>>(types.items).resize(10);
              }),
              "key tokenizer.ggml.token_type has 10 entries, expected 1024 (the number of tokens)");
    EXPECT_EQ(error_of([](Metadata& m) { value(m, "tokenizer.ggml.token_type") = uint32_t{1}; }),
              "key tokenizer.ggml.token_type has no array, expected one entry per token");
}

TEST(VocabularyCheck, RefusesAFileWithoutTokens) {
    EXPECT_EQ(error_of([](Metadata& m) {
                  std::erase_if(m, [](const gguf::KeyValue& kv) {
                      return kv.key == "tokenizer.ggml.tokens";
                  });
              }),
              "key tokenizer.ggml.tokens is missing");
}

}  // namespace
}  // namespace pleat
