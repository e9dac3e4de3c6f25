#include "text/vocab_check.h"

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "gguf/rules.h"

namespace pleat {
namespace {

constexpr std::string_view tokens_key = "tokenizer.ggml.tokens";

const gguf::Array* array(const gguf::File& file, std::string_view key) {
    const gguf::Value* const value = file.find(key);
    if (value == nullptr) return nullptr;
    const auto* const result = std::get_if<gguf::Array>(value);
    if (result == nullptr)
        fail("{}: key {} has no array, expected one entry per token", file.path(), key);
    return result;
}

/// An array beside the tokens: absent, or of one type and as long as they are.
void check_beside(const gguf::File& file, std::string_view key, gguf::ValueType type,
                  std::string_view expected, size_t n_tokens) {
    const gguf::Array* const values = array(file, key);
    if (values == nullptr) return;
    if (values->type != type) {
        fail("{}: key {} has entries of type {}, expected {}", file.path(), key,
             gguf::type_name(values->type), expected);
    }
    if (values->size() != n_tokens) {
        fail("{}: key {} has {} entries, expected {} (the number of tokens)", file.path(), key,
             values->size(), n_tokens);
    }
}

}  // namespace

void check_vocabulary(const gguf::File& file) {
    const gguf::Array* const list = array(file, tokens_key);
    if (list == nullptr) fail("{}: key {} is missing", file.path(), tokens_key);
    const auto* const tokens = std::get_if<std::vector<std::string>>(&list->items);
    if (tokens == nullptr || tokens->empty()) {
        fail("{}: key {} holds no texts, expected one per token", file.path(), tokens_key);
    }
    std::unordered_map<std::string_view, size_t> seen;
    seen.reserve(tokens->size());
    for (size_t i = 0; i < tokens->size(); ++i) {
        const std::string& token = (*tokens)[i];
        if (token.find('\0') != std::string::npos) {
            fail("{}: token {} of key {} holds a NUL byte", file.path(), i, tokens_key);
        }
        if (token.empty()) continue;  // libllama gives each of these a name of its own
        const auto [first, is_new] = seen.emplace(token, i);
        if (!is_new) {
            fail("{}: tokens {} and {} of key {} are both \"{}\", expected each text once",
                 file.path(), first->second, i, tokens_key, gguf::escaped(token));
        }
    }
    check_beside(file, "tokenizer.ggml.scores", gguf::ValueType::f32, "f32", tokens->size());
    check_beside(file, "tokenizer.ggml.token_type", gguf::ValueType::i32, "i32", tokens->size());
}

}  // namespace pleat
