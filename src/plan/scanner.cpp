#include "plan/scanner.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace pleat {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_word(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '-' || c == '+' || c == '_';
}

}  // namespace

Scanner::Scanner(std::string_view flag, std::string_view text, size_t begin, size_t end)
    : flag_(flag), text_(text), pos_(begin), end_(end) {}

Scanner::Scanner(std::string_view flag, std::string_view text)
    : Scanner(flag, text, 0, text.size()) {}

size_t Scanner::offset() {
    while (pos_ < end_ && (text_[pos_] == ' ' || text_[pos_] == '\t' || text_[pos_] == '\n' ||
                           text_[pos_] == '\r')) {
        ++pos_;
    }
    return pos_;
}

bool Scanner::at_end() { return offset() == end_; }

bool Scanner::next_is(std::string_view token) {
    const size_t at = offset();
    return text_.substr(at, end_ - at).starts_with(token);
}

bool Scanner::take(std::string_view token) {
    if (!next_is(token)) return false;
    pos_ += token.size();
    return true;
}

std::optional<int64_t> Scanner::number() {
    const size_t begin = offset();
    while (pos_ < end_ && is_digit(text_[pos_])) ++pos_;
    if (pos_ == begin) return std::nullopt;
    const std::string_view digits = text_.substr(begin, pos_ - begin);
    int64_t value = 0;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    // The largest value is refused too, so that "one more than this" can be said without care.
    if (code != std::errc() || value == std::numeric_limits<int64_t>::max()) {
        constexpr size_t shown = 24;
        fail_at(
            place(begin),
            fmt::format("number {}{}", digits.substr(0, shown), digits.size() > shown ? "..." : ""),
            "is too large for a layer or a count");
    }
    return value;
}

std::string_view Scanner::word() {
    const size_t begin = offset();
    while (pos_ < end_ && is_word(text_[pos_])) ++pos_;
    return text_.substr(begin, pos_ - begin);
}

void Scanner::fail_here(std::string_view where, std::string_view rule) {
    const size_t at = offset();
    const std::string found = at == text_.size()
                                  ? "the end of the text"
                                  : fmt::format("\"{}\"", escaped(text_.substr(at, 1)));
    fail_at(place(at), found, "is not expected {}; {}", where, rule);
}

}  // namespace pleat
