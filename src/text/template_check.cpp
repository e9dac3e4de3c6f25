#include "text/template_check.h"

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace pleat {
namespace {

constexpr size_t max_bytes = 128 << 10;
constexpr size_t max_blocks = 100;       ///< open at a time
constexpr size_t max_brackets = 100;     ///< open at a time in one tag
constexpr size_t max_tag_tokens = 4000;  ///< chains of operators become as deep as they are long

struct Token {
    enum class Kind : uint8_t { name, number, string, symbol } kind;
    std::string_view text;
    size_t pos;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) {
    return is_digit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

class Check {
  public:
    explicit Check(std::string_view text) : text_(text) {}

    void run() {
        while (pos_ < text_.size()) {
            const std::string_view two = text_.substr(pos_, 2);
            if (two == "{#") {
                const size_t end = text_.find("#}", pos_ + 2);
                if (end == std::string_view::npos) error(pos_, "comment without its #}}");
                pos_ = end + 2;
            } else if (two == "{{" || two == "{%") {
                tag(two == "{%");
            } else {
                ++pos_;
            }
        }
    }

  private:
    template <typename... Args>
    [[noreturn]] void error(size_t pos, fmt::format_string<Args...> format, Args&&... args) const {
        const std::string_view before = text_.substr(0, pos);
        const auto line = std::count(before.begin(), before.end(), '\n') + 1;
        const size_t start = before.rfind('\n') + 1;  // npos + 1 is 0
        fail("chat template: line {}, character {}: {}", line, pos - start + 1,
             fmt::format(format, std::forward<Args>(args)...));
    }

    void tag(bool block) {
        const size_t open = pos_;
        pos_ += 2;
        std::vector<Token> tokens;
        size_t brackets = 0;
        const std::string_view close = block ? "%}" : "}}";
        for (;;) {
            while (pos_ < text_.size() &&
                   (text_[pos_] == ' ' || (text_[pos_] >= '\t' && text_[pos_] <= '\r')))
                ++pos_;
            if (pos_ >= text_.size()) error(open, "tag without its {}", close);
            // A dictionary may end in }}, so braces are counted.
            if (brackets == 0 && text_.substr(pos_, 2) == close) break;
            const Token token = next();
            if (token.kind == Token::Kind::symbol) {
                const char c = token.text[0];
                if ((c == '(' || c == '[' || c == '{') && ++brackets > max_brackets) {
                    error(token.pos, "more than {} brackets open", max_brackets);
                }
                if ((c == ')' || c == ']' || c == '}') && brackets > 0) --brackets;
            }
            tokens.push_back(token);
            if (tokens.size() > max_tag_tokens)
                error(open, "tag of more than {} words", max_tag_tokens);
        }
        pos_ += 2;
        // The signs that strip spaces are no operators.
        const auto is_strip = [](const Token& t) {
            return t.text == "-" || t.text == "+" || t.text == "~";
        };
        if (!tokens.empty() && is_strip(tokens.front()) && tokens.front().pos == open + 2)
            tokens.erase(tokens.begin());
        if (!tokens.empty() && is_strip(tokens.back()) && tokens.back().pos + 3 == pos_)
            tokens.pop_back();
        expression(tokens);
        if (block && !tokens.empty()) statement(tokens);
    }

    Token next() {
        const size_t start = pos_;
        const char c = text_[pos_++];
        Token::Kind kind = Token::Kind::symbol;
        if (c == '"' || c == '\'') {
            kind = Token::Kind::string;
            while (pos_ < text_.size() && text_[pos_] != c) pos_ += text_[pos_] == '\\' ? 2 : 1;
            if (pos_ >= text_.size()) error(start, "string without its end");
            ++pos_;
        } else if (is_digit(c)) {
            kind = Token::Kind::number;
            while (pos_ < text_.size() && (is_word(text_[pos_]) || text_[pos_] == '.')) ++pos_;
        } else if (is_word(c)) {
            kind = Token::Kind::name;
            while (pos_ < text_.size() && is_word(text_[pos_])) ++pos_;
        } else if (c == '/' && pos_ < text_.size() && text_[pos_] == '/') {
            ++pos_;
        }
        return {kind, text_.substr(start, pos_ - start), start};
    }

    void expression(const std::vector<Token>& tokens) {
        static const Token none{Token::Kind::symbol, "", 0};
        const auto at = [&](size_t i) -> const Token& {
            return i < tokens.size() ? tokens[i] : none;
        };
        for (size_t i = 0; i < tokens.size(); ++i) {
            const Token& token = tokens[i];
            if (token.kind == Token::Kind::symbol &&
                (token.text == "/" || token.text == "//" || token.text == "%")) {
                const Token& by = at(i + 1);
                // A fraction may round to zero.
                const bool safe = by.kind == Token::Kind::number &&
                                  std::ranges::all_of(by.text, is_digit) &&
                                  by.text.find_first_not_of('0') != std::string_view::npos;
                if (!safe)
                    error(token.pos, "division is only allowed by a whole number that is not zero");
            }
            if (token.kind == Token::Kind::symbol && token.text == "[") slice(tokens, i);
            if (token.text == "split" && at(i + 1).text == "(" &&
                (at(i + 2).text == "''" || at(i + 2).text == "\"\"")) {
                error(token.pos, "split by an empty string has no end");
            }
            if (token.kind == Token::Kind::name && token.text == "caller" &&
                std::ranges::find(open_, "call") != open_.end()) {
                error(token.pos, "a call block that uses caller would call itself");
            }
        }
    }

    /// Only [::step] may have a step: with bounds, minja reads outside of a string.
    void slice(const std::vector<Token>& tokens, size_t open) const {
        size_t depth = 0;
        std::vector<size_t> colons;
        size_t i = open;
        for (; i < tokens.size(); ++i) {
            const std::string_view t = tokens[i].kind == Token::Kind::symbol ? tokens[i].text : "";
            if (t == "(" || t == "[" || t == "{") ++depth;
            if ((t == ")" || t == "]" || t == "}") && --depth == 0) break;
            if (t == ":" && depth == 1) colons.push_back(i);
        }
        if (colons.size() < 2) return;
        if (colons[0] != open + 1 || colons[1] != open + 2) {
            error(tokens[open].pos, "a slice with a step must have no bounds: [::step]");
        }
    }

    void statement(const std::vector<Token>& tokens) {
        const std::string_view word = tokens[0].text;
        const size_t pos = tokens[0].pos;
        if (word == "macro") {
            for (const std::string_view outer : open_) {
                if (outer != "if") error(pos, "a macro inside of {}: only at the top level", outer);
            }
        }
        if (word == "for" && tokens.back().text == "recursive")
            error(pos, "recursive loops are not supported");
        const bool assigns =
            std::ranges::any_of(tokens, [](const Token& t) { return t.text == "="; });
        const bool opens = word == "if" || word == "for" || word == "macro" || word == "call" ||
                           word == "filter" || word == "generation" || (word == "set" && !assigns);
        if (opens) {
            if (open_.size() >= max_blocks) error(pos, "more than {} blocks open", max_blocks);
            open_.push_back(word);
        }
        // Whether blocks close in the right order is minja's to say.
        if (word.starts_with("end") && !open_.empty()) open_.pop_back();
    }

    std::string_view text_;
    size_t pos_ = 0;
    std::vector<std::string_view> open_;
};

}  // namespace

void check_template(std::string_view text) {
    if (text.size() > max_bytes) {
        fail("chat template: {} bytes, at most {}", text.size(), max_bytes);
    }
    Check(text).run();
}

}  // namespace pleat
