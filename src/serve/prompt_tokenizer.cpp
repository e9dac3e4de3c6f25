#include "serve/prompt_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "generate/prompt.h"
#include "serve/http_error.h"

namespace pleat {
namespace {

/// Longer texts wait for their turn.
constexpr size_t long_bytes = 16 << 10;
constexpr size_t specials_of_piece = 64;

/// Other kinds of vocabulary drop parts of a text, or have one token for whatever they do not know.
size_t longest_token(const Tokenizer& tokenizer) {
    const auto type = ::llama_vocab_type(tokenizer.vocab());
    if (type != LLAMA_VOCAB_TYPE_BPE && type != LLAMA_VOCAB_TYPE_SPM) return 0;
    size_t longest = 1;
    for (int32_t token = 0; token < tokenizer.n_vocab(); ++token) {
        longest = std::max(longest, tokenizer.piece(token, true).size());
    }
    return longest;
}

}  // namespace

PromptTokenizer::PromptTokenizer(const Tokenizer& tokenizer, uint32_t n_ctx,
                                 std::function<bool()> ending)
    : tokenizer_(tokenizer),
      specials_(tokenizer),
      longest_token_(longest_token(tokenizer)),
      n_ctx_(n_ctx),
      ending_(std::move(ending)) {}

size_t PromptTokenizer::least_tokens(std::string_view text) const {
    size_t n = 0;
    size_t other_bytes = text.size();
    for (auto it = specials_.next(text, 0); it; it = specials_.next(text, it->end)) {
        ++n;
        other_bytes -= it->end - it->begin;
    }
    if (longest_token_ == 0) return n;
    return n + (other_bytes + longest_token_ - 1) / longest_token_;
}

void PromptTokenizer::check_may_fit(std::string_view text, size_t n_before) const {
    const size_t least = n_before + least_tokens(text);
    if (least <= n_ctx_) return;
    throw RequestError(
        400,
        fmt::format("the prompt has {} bytes, which are {} tokens or more, and the context holds "
                    "{}",
                    text.size(), least, n_ctx_),
        {}, "exceed_context_size_error", {{"n_prompt_tokens", least}, {"n_ctx", n_ctx_}});
}

std::vector<std::string_view> PromptTokenizer::pieces(std::string_view text,
                                                      bool parse_special) const {
    if (longest_token_ == 0) return {text};  // nor is it known what such a vocabulary adds
    std::vector<std::string_view> pieces;
    size_t begin = 0;
    size_t n = 0;
    for (auto it = specials_.next(text, 0); it; it = specials_.next(text, it->end)) {
        const bool cut = it->parts && (parse_special || !it->control);
        if (++n > specials_of_piece && cut) {
            pieces.push_back(text.substr(begin, it->begin - begin));
            begin = it->begin;
            n = 1;
        }
    }
    pieces.push_back(text.substr(begin));
    return pieces;
}

void PromptTokenizer::check_awaited(const ClientGone& gone) const {
    if (ending_ && ending_()) throw RequestError(503, "the server is about to end");
    if (gone()) throw client_gone();
}

template <typename First>
std::vector<int32_t> PromptTokenizer::in_pieces(std::string_view text, bool parse_special,
                                                const ClientGone& gone, First first) const {
    if (text.size() <= long_bytes) return first(text);
    std::unique_lock turn(turn_, std::defer_lock);
    do {
        check_awaited(gone);
    } while (!turn.try_lock_for(std::chrono::milliseconds(20)));
    const std::vector<std::string_view> all = pieces(text, parse_special);
    std::vector<int32_t> tokens = first(all.front());
    for (size_t i = 1; i < all.size(); ++i) {
        check_awaited(gone);
        const std::vector<int32_t> more = tokenizer_.tokenize(all[i], false, parse_special);
        tokens.insert(tokens.end(), more.begin(), more.end());
    }
    return tokens;
}

std::vector<int32_t> PromptTokenizer::beginning(std::string_view text,
                                                const ClientGone& gone) const {
    check_may_fit(text, 0);
    return in_pieces(text, true, gone,
                     [&](std::string_view piece) { return prompt_tokens(tokenizer_, piece); });
}

std::vector<int32_t> PromptTokenizer::rendered(std::string_view text,
                                               const ClientGone& gone) const {
    check_may_fit(text, 0);
    return in_pieces(text, true, gone, [&](std::string_view piece) {
        return rendered_prompt_tokens(tokenizer_, piece);
    });
}

std::vector<int32_t> PromptTokenizer::continuation(std::string_view text, size_t n_before,
                                                   const ClientGone& gone) const {
    check_may_fit(text, n_before);
    return tokenize(text, false, true, gone);
}

std::vector<int32_t> PromptTokenizer::tokenize(std::string_view text, bool add_special,
                                               bool parse_special, const ClientGone& gone) const {
    const bool eos = add_special && tokenizer_.add_eos();
    std::vector<int32_t> tokens = in_pieces(text, parse_special, gone, [&](std::string_view piece) {
        std::vector<int32_t> first = tokenizer_.tokenize(piece, add_special, parse_special);
        if (eos && !first.empty()) first.pop_back();
        return first;
    });
    if (eos) tokens.push_back(tokenizer_.eos());
    return tokens;
}

}  // namespace pleat
