#include "support/random_vocab.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace pleat::test {
namespace {

constexpr int n_bytes = 256;
constexpr int n_special = 3;

// As in llama.h's llama_token_type.
constexpr int32_t type_normal = 1;
constexpr int32_t type_control = 3;
constexpr int32_t type_unused = 5;

/// The UTF-8 of a character below U+0800.
std::string utf8(uint32_t code) {
    if (code < 0x80) return {static_cast<char>(code)};
    return {static_cast<char>(0xC0U | (code >> 6U)), static_cast<char>(0x80U | (code & 0x3FU))};
}

/// GPT-2's byte alphabet: printable bytes of Latin-1 stand for themselves, the others for the
/// characters from U+0100 on, in order.
std::vector<std::string> byte_tokens() {
    std::vector<std::string> tokens;
    uint32_t next = 0x100;
    for (uint32_t byte = 0; byte < n_bytes; ++byte) {
        const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
        tokens.push_back(utf8(printable ? byte : next++));
    }
    return tokens;
}

}  // namespace

std::vector<gguf::KeyValue> random_vocab(int n_vocab) {
    if (n_vocab < n_bytes + n_special) {
        fail("a byte-level vocabulary has at least {} tokens, not {}", n_bytes + n_special,
             n_vocab);
    }
    std::vector<std::string> tokens = byte_tokens();
    std::vector<int32_t> types(tokens.size(), type_normal);
    std::vector<std::string> merges;
    const auto wanted = static_cast<size_t>(n_vocab - n_special);
    // Frequent letters first; the space is the alphabet's U+0120.
    static constexpr std::string_view letters = "etaoinshrdlucmfwypvbgkjqxz";
    std::vector<std::string> firsts{utf8(0x120)};
    for (const char letter : letters) firsts.emplace_back(1, letter);
    for (const std::string& first : firsts) {
        for (const char second : letters) {
            if (tokens.size() == wanted) break;
            tokens.push_back(first + second);
            types.push_back(type_normal);
            merges.push_back(first + " " + second);
        }
    }
    while (tokens.size() < wanted) {
        tokens.push_back(fmt::format("<|unused_{}|>", tokens.size()));
        types.push_back(type_unused);
    }
    for (const char* token : {"<|im_start|>", "<|im_end|>", "<|endoftext|>"}) {
        tokens.emplace_back(token);
        types.push_back(type_control);
    }
    const auto last = static_cast<uint32_t>(n_vocab - 1);
    return {
        {"tokenizer.ggml.model", std::string("gpt2")},
        {"tokenizer.ggml.pre", std::string("gpt-2")},
        {"tokenizer.ggml.tokens", gguf::Array{gguf::ValueType::string, tokens}},
        {"tokenizer.ggml.token_type", gguf::Array{gguf::ValueType::i32, types}},
        {"tokenizer.ggml.merges", gguf::Array{gguf::ValueType::string, merges}},
        {"tokenizer.ggml.bos_token_id", last},
        {"tokenizer.ggml.eos_token_id", last},
        {"tokenizer.ggml.add_bos_token", false},
    };
}

}  // namespace pleat::test
