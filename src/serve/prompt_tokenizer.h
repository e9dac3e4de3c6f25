#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string_view>
#include <vector>

#include "serve/special_texts.h"
#include "text/tokenizer.h"

namespace pleat {

/// True once nobody waits for the answer any more.
using ClientGone = std::function<bool()>;

/// How clients' texts become tokens. What cannot fit into the context is refused before it is
/// tokenized. Long texts are tokenized one after the other, whoever sent them, and in pieces that
/// give the same tokens: libllama's time grows with the square of the special tokens in a text.
/// Usable from any thread.
///
/// All throw RequestError: 400 with both numbers, 499 when the client has gone meanwhile, 503 when
/// the server ends; and Error as Tokenizer does.
class PromptTokenizer {
  public:
    /// `ending`: the server is about to end. The tokenizer must outlive this.
    PromptTokenizer(const Tokenizer& tokenizer, uint32_t n_ctx, std::function<bool()> ending = {});

    const Tokenizer& tokenizer() const { return tokenizer_; }

    /// prompt_tokens() of what fits.
    std::vector<int32_t> beginning(std::string_view text, const ClientGone& gone) const;
    /// rendered_prompt_tokens() of what fits.
    std::vector<int32_t> rendered(std::string_view text, const ClientGone& gone) const;
    /// Text that `n_before` tokens of the prompt stand before.
    std::vector<int32_t> continuation(std::string_view text, size_t n_before,
                                      const ClientGone& gone) const;
    /// Tokenizer::tokenize(), whether it fits or not.
    std::vector<int32_t> tokenize(std::string_view text, bool add_special, bool parse_special,
                                  const ClientGone& gone) const;

    /// So many tokens it has at least: each special text is one, and no token stands for more bytes
    /// than the longest of the vocabulary.
    size_t least_tokens(std::string_view text) const;

  private:
    void check_may_fit(std::string_view text, size_t n_before) const;
    std::vector<std::string_view> pieces(std::string_view text, bool parse_special) const;
    /// `first` makes the tokens of the first piece.
    template <typename First>
    std::vector<int32_t> in_pieces(std::string_view text, bool parse_special,
                                   const ClientGone& gone, First first) const;
    void check_awaited(const ClientGone& gone) const;

    const Tokenizer& tokenizer_;
    const SpecialTexts specials_;
    const size_t longest_token_;  ///< bytes that a token stands for at most; 0: no bound is known
    const uint32_t n_ctx_;
    const std::function<bool()> ending_;
    mutable std::timed_mutex turn_;
};

}  // namespace pleat
