#include "serve/special_texts.h"

#include <algorithm>

namespace pleat {
namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

unsigned char byte_at(const std::string& text, size_t i) {
    return static_cast<unsigned char>(text[i]);
}

}  // namespace

SpecialTexts::SpecialTexts(const Tokenizer& tokenizer) {
    constexpr auto control = LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN;
    constexpr auto strip = LLAMA_TOKEN_ATTR_LSTRIP | LLAMA_TOKEN_ATTR_RSTRIP;
    for (int32_t token = 0; token < tokenizer.n_vocab(); ++token) {
        const int attributes = llama_vocab_get_attr(tokenizer.vocab(), token);
        if ((attributes & (control | LLAMA_TOKEN_ATTR_USER_DEFINED)) == 0) continue;
        const char* const text = llama_vocab_get_text(tokenizer.vocab(), token);
        if (text == nullptr || *text == '\0') continue;
        strips_ = strips_ || (attributes & strip) != 0;
        specials_.push_back({.text = text, .control = (attributes & control) != 0});
    }
    std::ranges::sort(specials_, {}, &Special::text);
    for (size_t i = 0; i < specials_.size(); ++i) {
        Range& range = by_first_byte_.at(byte_at(specials_[i].text, 0));
        if (range.end == 0) range.begin = i;
        range.end = i + 1;
    }
}

SpecialTexts::Match SpecialTexts::match(std::string_view text) const {
    Match result;
    const Range all = by_first_byte_.at(static_cast<unsigned char>(text.front()));
    auto first = specials_.begin() + static_cast<ptrdiff_t>(all.begin);
    auto last = specials_.begin() + static_cast<ptrdiff_t>(all.end);
    for (size_t n = 1; first != last; ++n) {  // those whose first n bytes are the text's
        if (first->text.size() == n) {
            ++result.n;
            result.longest = &*first++;
        }
        if (n == text.size()) break;
        const auto byte = static_cast<unsigned char>(text[n]);
        const auto of = [n](const Special& special) { return byte_at(special.text, n); };
        first = std::ranges::lower_bound(first, last, byte, {}, of);
        last = std::ranges::upper_bound(first, last, byte, {}, of);
    }
    return result;
}

bool SpecialTexts::parts(std::string_view text, const Stretch& stretch) const {
    if (!strips_) return true;
    return !is_space(text[stretch.begin]) && !is_space(text[stretch.end - 1]) &&
           (stretch.begin == 0 || !is_space(text[stretch.begin - 1]));
}

std::optional<SpecialTexts::Stretch> SpecialTexts::next(std::string_view text, size_t from) const {
    Match match;
    while (from < text.size() && (match = this->match(text.substr(from))).n == 0) ++from;
    if (from >= text.size()) return std::nullopt;
    Stretch stretch{.begin = from,
                    .end = from + match.longest->text.size(),
                    .parts = false,
                    .control = match.longest->control};
    size_t n = match.n;
    for (size_t at = from + 1; at < stretch.end; ++at) {
        match = this->match(text.substr(at));
        if (match.n == 0) continue;
        n += match.n;
        stretch.end = std::max(stretch.end, at + match.longest->text.size());
    }
    // Of several that overlap, which ones become tokens is libllama's choice.
    stretch.parts = n == 1 && parts(text, stretch);
    return stretch;
}

}  // namespace pleat
