#pragma once

#include <llama-cpp.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pleat {

/// The vocabulary of a GGUF file and the way from text to tokens and back: libllama's own, on a
/// model of which only the vocabulary is loaded. Immutable after opening, usable from any thread.
class Tokenizer {
  public:
    static constexpr int32_t no_token = -1;
    static constexpr size_t max_text_bytes = size_t{256} << 20;
    /// Of bytes between two changes from space to no space.
    static constexpr size_t max_run_bytes = size_t{1} << 20;

    /// Throws Error that names the file when it cannot be read or holds no tokenizer.
    static Tokenizer open(const std::string& path);

    /// `add_special` puts the tokens around the text that the file asks for (BOS, EOS);
    /// `parse_special` reads the names of control tokens in the text as those tokens. Bytes that
    /// are no UTF-8 are taken as they come. Throws Error when the text is too long or libllama
    /// gives up.
    std::vector<int32_t> tokenize(std::string_view text, bool add_special,
                                  bool parse_special) const;

    /// The bytes a token stands for, which may be part of a character. Control tokens are empty
    /// unless `special`. Throws Error when the vocabulary has no such token.
    std::string piece(int32_t token, bool special) const;
    /// The pieces of all tokens, with the spaces mended that a vocabulary puts before a first word.
    std::string detokenize(std::span<const int32_t> tokens, bool special) const;

    bool valid(int32_t token) const { return token >= 0 && token < n_vocab(); }
    /// Any token after which generation ends. False for a token that does not exist.
    bool is_eog(int32_t token) const;
    /// In order of their ids.
    std::vector<int32_t> eog_tokens() const;
    /// Tokens that the file says must never be sampled (tokenizer.ggml.suppress_tokens).
    std::vector<int32_t> suppressed_tokens() const;

    int32_t n_vocab() const;
    int32_t bos() const;  ///< no_token when the vocabulary has none, as the next two
    int32_t eos() const;
    int32_t eot() const;
    bool add_bos() const;
    bool add_eos() const;

    /// The Jinja text of the file (tokenizer.chat_template); empty when it has none.
    const std::string& chat_template() const { return chat_template_; }

    const std::string& path() const { return path_; }
    /// Borrowed, as long as this Tokenizer; for samplers.
    const llama_vocab* vocab() const { return vocab_; }

  private:
    Tokenizer() = default;

    std::string path_;
    llama_model_ptr model_;
    const llama_vocab* vocab_ = nullptr;
    std::string chat_template_;
};

}  // namespace pleat
