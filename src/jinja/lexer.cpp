#include "jinja/lexer.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "jinja/unicode.h"

namespace pleat::jinja {
namespace {

constexpr size_t max_brackets = 100;  ///< open at a time in one tag
constexpr size_t max_tokens = 4000;   ///< chains of operators become as deep as they are long

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80) != 0;
}
bool is_name(char c) { return is_name_start(c) || is_digit(c); }
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

class Lexer {
  public:
    explicit Lexer(std::string_view source) : source_(source) {}

    std::vector<Piece> run() {
        while (pos_ < source_.size()) text_and_tag();
        return std::move(pieces_);
    }

  private:
    [[noreturn]] void error(size_t pos, std::string_view message) const {
        fail_at(source_, pos, message);
    }

    bool at(std::string_view text) const { return source_.substr(pos_).starts_with(text); }

    size_t find_tag() const {
        for (size_t i = source_.find('{', pos_); i != std::string_view::npos;
             i = source_.find('{', i + 1)) {
            const std::string_view two = source_.substr(i, 2);
            if (two == "{{" || two == "{%" || two == "{#") return i;
        }
        return source_.size();
    }

    void text_and_tag() {
        const size_t begin = pos_;
        const size_t tag = find_tag();
        std::string_view text = source_.substr(begin, tag - begin);
        pos_ = tag;
        if (tag == source_.size()) return add_text(text, begin);
        const char kind = source_[tag + 1];
        pos_ += 2;
        char sign = 0;
        if (at("-") || at("+")) sign = source_[pos_++];
        add_text(before_tag(text, kind, sign), begin);
        switch (kind) {
            case '#':
                return comment(tag);
            case '%':
                if (is_raw()) return raw(tag);
                return this->tag(Piece::Kind::statement, tag, "%}");
            default:
                return this->tag(Piece::Kind::print, tag, "}}");
        }
    }

    /// Text in front of a tag without what the tag strips.
    std::string_view before_tag(std::string_view text, char kind, char sign) const {
        if (sign == '-') return text.substr(0, text.size() - trailing_space(text));
        if (sign == '+' || kind == '{') return text;
        const size_t newline = text.rfind('\n');
        if (newline == std::string_view::npos && !line_start_) return text;
        const size_t line = newline == std::string_view::npos ? 0 : newline + 1;
        return trailing_space(text.substr(line)) == text.size() - line ? text.substr(0, line)
                                                                       : text;
    }

    void add_text(std::string_view text, size_t pos) {
        if (!text.empty()) pieces_.push_back({.text = std::string(text), .pos = pos});
    }

    /// Behind a tag: what its sign or trim_blocks strips.
    void after_tag(char sign, bool trims) {
        const size_t begin = pos_;
        if (sign == '-') {
            pos_ += leading_space(source_.substr(pos_));
        } else if (sign != '+' && trims && at("\n")) {
            ++pos_;
        }
        line_start_ = pos_ > begin && source_[pos_ - 1] == '\n';
    }

    void comment(size_t tag) {
        const size_t end = source_.find("#}", pos_);
        if (end == std::string_view::npos) error(tag, "comment without its #}");
        const char last = end > tag + 2 ? source_[end - 1] : 0;
        pos_ = end + 2;
        after_tag(last == '-' || last == '+' ? last : 0, true);
    }

    bool is_raw() const {
        size_t i = pos_;
        while (i < source_.size() && is_space(source_[i])) ++i;
        if (!source_.substr(i).starts_with("raw")) return false;
        i += 3;
        while (i < source_.size() && is_space(source_[i])) ++i;
        if (i < source_.size() && source_[i] == '-') ++i;
        return source_.substr(i).starts_with("%}");
    }

    void raw(size_t tag) {
        const size_t end_of_begin = source_.find("%}", pos_);
        const bool strips = source_[end_of_begin - 1] == '-';
        pos_ = end_of_begin + 2;
        after_tag(strips ? '-' : 0, false);
        const size_t begin = pos_;
        for (size_t i = source_.find("{%", begin); i != std::string_view::npos;
             i = source_.find("{%", i + 2)) {
            pos_ = i + 2;
            char sign = 0;
            if (at("-") || at("+")) sign = source_[pos_++];
            while (pos_ < source_.size() && is_space(source_[pos_])) ++pos_;
            if (!at("endraw")) continue;
            pos_ += 6;
            while (pos_ < source_.size() && is_space(source_[pos_])) ++pos_;
            char last = 0;
            if (at("-") || at("+")) last = source_[pos_++];
            if (!at("%}")) continue;
            pos_ += 2;
            add_text(before_tag(source_.substr(begin, i - begin), '%', sign), begin);
            return after_tag(last, true);
        }
        error(tag, "raw without its endraw");
    }

    void tag(Piece::Kind kind, size_t open, std::string_view close) {
        Piece piece{.kind = kind, .pos = open};
        std::vector<char> brackets;
        for (;;) {
            while (pos_ < source_.size() && is_space(source_[pos_])) ++pos_;
            if (pos_ >= source_.size()) {
                error(open, fmt::format("tag without its {}", close));
            }
            // A dictionary may end in }}, so brackets are counted.
            if (brackets.empty()) {
                const char sign = source_[pos_];
                const bool signed_end =
                    (sign == '-' || (sign == '+' && kind == Piece::Kind::statement)) &&
                    source_.substr(pos_ + 1).starts_with(close);
                if (signed_end || at(close)) {
                    piece.tokens.push_back({.pos = pos_});
                    pos_ += close.size() + (signed_end ? 1 : 0);
                    pieces_.push_back(std::move(piece));
                    return after_tag(signed_end ? sign : 0, kind == Piece::Kind::statement);
                }
            }
            Token token = next();
            if (token.kind == Token::Kind::symbol) bracket(token, brackets);
            piece.tokens.push_back(std::move(token));
            if (piece.tokens.size() > max_tokens) {
                error(open, fmt::format("tag of more than {} words", max_tokens));
            }
        }
    }

    void bracket(const Token& token, std::vector<char>& open) const {
        static constexpr std::string_view opening = "([{";
        static constexpr std::string_view closing = ")]}";
        const char c = token.text[0];
        if (opening.find(c) != std::string_view::npos) {
            open.push_back(closing[opening.find(c)]);
            if (open.size() > max_brackets) {
                error(token.pos, fmt::format("more than {} brackets open", max_brackets));
            }
        } else if (closing.find(c) != std::string_view::npos) {
            if (open.empty() || open.back() != c) error(token.pos, fmt::format("unexpected {}", c));
            open.pop_back();
        }
    }

    Token next() {
        const size_t begin = pos_;
        const char c = source_[pos_];
        if (c == '"' || c == '\'') return text_literal();
        if (is_digit(c)) return number();
        if (is_name_start(c)) {
            while (pos_ < source_.size() && is_name(source_[pos_])) ++pos_;
            return {Token::Kind::name, std::string(source_.substr(begin, pos_ - begin)), begin};
        }
        static constexpr std::array<std::string_view, 6> two{"//", "**", "==", "!=", "<=", ">="};
        size_t n = std::ranges::find(two, source_.substr(pos_, 2)) != two.end() ? 2 : 1;
        if (n == 1 && std::string_view("+-*/%~[](){}<>=.:|,").find(c) == std::string_view::npos) {
            error(begin, fmt::format("unexpected character {}", c));
        }
        pos_ += n;
        return {Token::Kind::symbol, std::string(source_.substr(begin, n)), begin};
    }

    Token number() {
        const size_t begin = pos_;
        const auto digits = [&] {
            while (pos_ < source_.size() && (is_digit(source_[pos_]) || source_[pos_] == '_'))
                ++pos_;
        };
        const auto digit_at = [&](size_t i) { return i < source_.size() && is_digit(source_[i]); };
        digits();
        Token::Kind kind = Token::Kind::integer;
        if (at(".") && digit_at(pos_ + 1)) {
            kind = Token::Kind::real;
            ++pos_;
            digits();
        }
        if (at("e") || at("E")) {
            const bool sign =
                pos_ + 1 < source_.size() && (source_[pos_ + 1] == '+' || source_[pos_ + 1] == '-');
            if (digit_at(pos_ + (sign ? 2 : 1))) {
                kind = Token::Kind::real;
                pos_ += sign ? 2 : 1;
                digits();
            }
        }
        std::string text(source_.substr(begin, pos_ - begin));
        std::erase(text, '_');
        return {kind, std::move(text), begin};
    }

    Token text_literal() {
        const size_t begin = pos_;
        const char quote = source_[pos_++];
        std::string text;
        for (;;) {
            if (pos_ >= source_.size()) error(begin, "string without its end");
            const char c = source_[pos_++];
            if (c == quote) return {Token::Kind::text, std::move(text), begin};
            if (c != '\\') {
                text += c;
            } else if (pos_ < source_.size()) {
                escape(text);
            }
        }
    }

    /// As in Python; what is no escape keeps its backslash.
    void escape(std::string& text) {
        const char c = source_[pos_++];
        static constexpr std::string_view names = "abfnrtv\\'\"";
        static constexpr std::string_view values = "\a\b\f\n\r\t\v\\'\"";
        if (const size_t i = names.find(c); i != std::string_view::npos) {
            text += values[i];
        } else if (c == '\n') {
            // Joins two lines.
        } else if (c == 'x' || c == 'u' || c == 'U') {
            code(text, 16, c == 'x' ? 2 : c == 'u' ? 4 : 8, true);
        } else if (c >= '0' && c <= '7') {
            --pos_;
            code(text, 8, 3, false);
        } else {
            text += '\\';
            text += c;
        }
    }

    void code(std::string& text, unsigned base, size_t longest, bool exact) {
        const size_t begin = pos_;
        unsigned value = 0;
        size_t n = 0;
        for (; n < longest && pos_ < source_.size(); ++n, ++pos_) {
            const char c = source_[pos_];
            const unsigned digit = is_digit(c)            ? static_cast<unsigned>(c - '0')
                                   : c >= 'a' && c <= 'f' ? static_cast<unsigned>(c - 'a' + 10)
                                   : c >= 'A' && c <= 'F' ? static_cast<unsigned>(c - 'A' + 10)
                                                          : 99;
            if (digit >= base) break;
            value = value * base + digit;
        }
        if ((exact && n < longest) || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) {
            error(begin, "no such character");
        }
        append_utf8(text, static_cast<char32_t>(value));
    }

    std::string_view source_;
    size_t pos_ = 0;
    bool line_start_ = true;  ///< what was read last ended a line
    std::vector<Piece> pieces_;
};

}  // namespace

size_t line_of(std::string_view source, size_t pos) {
    const std::string_view before = source.substr(0, pos);
    return static_cast<size_t>(std::count(before.begin(), before.end(), '\n')) + 1;
}

void fail_at(std::string_view source, size_t pos, std::string_view message) {
    const size_t start = source.substr(0, pos).rfind('\n') + 1;  // npos + 1 is 0
    fail("chat template: line {}, character {}: {}", line_of(source, pos), pos - start + 1,
         message);
}

std::vector<Piece> lex(std::string_view source) {
    // keep_trailing_newline is off.
    if (source.ends_with('\n')) source.remove_suffix(1);
    return Lexer(source).run();
}

}  // namespace pleat::jinja
