#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "text/grammar_rules.h"

namespace pleat {
namespace {

using Alternative = GrammarRules::Alternative;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
char32_t digit(char c) {
    return static_cast<char32_t>(is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
}
bool is_name(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
}

constexpr uint64_t unbounded = UINT64_MAX;

/// Reads exactly what libllama's parser of this release reads, so that it has nothing left to
/// refuse; a message of it would hold the whole grammar.
class Parser {
  public:
    Parser(std::string_view text, const Tokenizer& tokenizer, const GrammarLimits& limits)
        : text_(text), tokenizer_(tokenizer), limits_(limits) {}

    GrammarRules parse() {
        space(true);
        while (pos_ < text_.size()) rule();
        for (const GrammarRules::Rule& rule : grammar_.rules) {
            if (rule.alternatives.empty())
                fail("grammar: rule {} is used but not defined", rule.name);
        }
        return std::move(grammar_);
    }

  private:
    char peek(size_t ahead = 0) const {
        return pos_ + ahead < text_.size() ? text_[pos_ + ahead] : '\0';
    }

    template <typename... Args>
    [[noreturn]] void error(fmt::format_string<Args...> format, Args&&... args) const {
        const std::string_view before = text_.substr(0, pos_);
        const auto line = std::count(before.begin(), before.end(), '\n') + 1;
        const size_t start = before.rfind('\n') + 1;  // npos + 1 is 0
        fail("grammar: line {}, character {}: {}", line, pos_ - start + 1,
             fmt::format(format, std::forward<Args>(args)...));
    }

    void expect(char c, std::string_view after) {
        if (peek() != c) error("expected {} {}", c, after);
        ++pos_;
    }

    /// Spaces and comments; lines end a rule outside of parentheses.
    void space(bool lines) {
        for (;; ++pos_) {
            if (peek() == '#') {
                while (pos_ < text_.size() && peek() != '\n' && peek() != '\r') ++pos_;
            }
            const char c = peek();
            const bool skip = c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r'));
            if (!skip) return;
        }
    }

    std::string_view name() {
        const size_t start = pos_;
        while (is_name(peek())) ++pos_;
        if (pos_ == start) error("expected the name of a rule (letters, digits and -)");
        return text_.substr(start, pos_ - start);
    }

    uint64_t number() {
        if (!is_digit(peek())) error("expected a number");
        uint64_t value = 0;
        for (; is_digit(peek()); ++pos_) {
            value = std::min<uint64_t>(value * 10 + static_cast<uint64_t>(peek() - '0'), 1U << 31);
        }
        return value;
    }

    int new_rule(std::string_view written) {
        if (grammar_.rules.size() >= limits_.rules) {
            fail("grammar: more than {} rules, counting parentheses and repetitions",
                 limits_.rules);
        }
        grammar_.rules.push_back({std::string(written), {}});
        return static_cast<int>(grammar_.rules.size()) - 1;
    }

    int named_rule(std::string_view name) {
        const int known = grammar_.find(name);
        if (known >= 0) return known;
        const int made = new_rule(name);
        grammar_.names.emplace(name, made);
        return made;
    }

    void count(size_t elements) {
        elements_ += elements;
        if (elements_ > limits_.elements) {
            fail("grammar: more than {} elements after repetition", limits_.elements);
        }
    }

    void rule() {
        const std::string written(name());
        const int id = named_rule(written);
        space(false);
        if (text_.substr(pos_, 3) != "::=")
            error("expected ::= after the name of rule {}", written);
        pos_ += 3;
        space(true);
        grammar_.rules[static_cast<size_t>(id)].alternatives = alternatives(written, 0);
        if (pos_ < text_.size() && peek() != '\n' && peek() != '\r') {
            error("expected the end of the line after rule {}", written);
        }
        space(true);
    }

    std::vector<Alternative> alternatives(const std::string& written, int nesting) {
        std::vector<Alternative> result;
        result.push_back(sequence(written, nesting));
        while (peek() == '|') {
            ++pos_;
            space(true);
            result.push_back(sequence(written, nesting));
        }
        return result;
    }

    Alternative sequence(const std::string& written, int nesting) {
        Alternative result;
        size_t last = 0;      // where the symbol begins that a repetition would repeat
        uint64_t weight = 1;  // rules it is made of, times its repetitions so far
        const bool nested = nesting > 0;
        for (;;) {
            const char c = peek();
            if (c == '*' || c == '+' || c == '?' || c == '{') {
                const auto [least, most] = repetition(nested);
                if (last == result.size()) error("nothing to repeat before {}", c);
                weight *=
                    most == unbounded ? std::max<uint64_t>(least, 1) : std::max<uint64_t>(most, 1);
                if (weight > limits_.repetitions) {
                    error("more than {} rules after repetition", limits_.repetitions);
                }
                repeat(result, last, least, most, written);
                continue;
            }
            const size_t start = result.size();
            const size_t n_rules = grammar_.rules.size();
            if (c == '"') {
                quoted('"', result);
            } else if (c == '[') {
                quoted(']', result);
            } else if (c == '<' || c == '!') {
                token();
                result.push_back({});
            } else if (c == '.') {
                ++pos_;
                result.push_back({});
            } else if (is_name(c)) {
                result.push_back({named_rule(name())});
            } else if (c == '(') {
                result.push_back({group(written, nesting)});
            } else {
                return result;
            }
            count(result.size() - start);
            last = start;
            weight = c == '(' ? std::max<uint64_t>(grammar_.rules.size() - n_rules, 1) : 1;
            space(nested);
        }
    }

    int group(const std::string& written, int nesting) {
        if (nesting >= limits_.nesting) error("more than {} parentheses open", limits_.nesting);
        ++pos_;
        space(true);
        const int id = new_rule(written);
        std::vector<Alternative> inner = alternatives(written, nesting + 1);
        grammar_.rules[static_cast<size_t>(id)].alternatives = std::move(inner);
        expect(')', "that closes a parenthesis");
        return id;
    }

    /// A literal or a class: one item for each character of it.
    void quoted(char close, Alternative& result) {
        const size_t open = pos_++;
        if (close == ']' && peek() == '^') ++pos_;
        while (peek() != close) {
            if (pos_ >= text_.size()) {
                pos_ = open;
                error("{} without its {}", text_[open], close);
            }
            const size_t start = pos_;
            const char32_t low = character();
            if (close == ']' && peek() == '-' && peek(1) != ']') {
                ++pos_;
                if (pos_ >= text_.size()) error("range without an end");
                const char32_t high = character();
                if (high < low) {
                    const std::string_view range = text_.substr(start, pos_ - start);
                    pos_ = start;
                    error("range {} ends before it begins", range);
                }
            }
            result.push_back({});
        }
        ++pos_;
    }

    char32_t character() {
        if (peek() != '\\') return plain_character();
        const char kind = peek(1);
        size_t digits = 0;
        if (kind == 'x') digits = 2;
        if (kind == 'u') digits = 4;
        if (kind == 'U') digits = 8;
        static constexpr std::string_view kinds = "trn\\\"[]-";
        static constexpr std::string_view meanings = "\t\r\n\\\"[]-";
        const size_t known = kind == '\0' ? std::string_view::npos : kinds.find(kind);
        if (digits == 0 && known == std::string_view::npos) error("unknown escape");
        pos_ += 2;
        if (digits == 0) return static_cast<unsigned char>(meanings[known]);
        char32_t value = 0;
        for (size_t i = 0; i < digits; ++i, ++pos_) {
            if (!is_hex(peek())) error("expected {} hexadecimal digits", digits);
            value = value * 16 + digit(peek());
        }
        return value;
    }

    /// The grammar is valid UTF-8.
    char32_t plain_character() {
        const auto first = static_cast<unsigned char>(peek());
        ++pos_;
        if (first < 0xC0) return first;
        char32_t value = first & (first < 0xE0 ? 0x1FU : first < 0xF0 ? 0x0FU : 0x07U);
        for (; (static_cast<unsigned char>(peek()) & 0xC0U) == 0x80; ++pos_) {
            value = value << 6U | (static_cast<unsigned char>(peek()) & 0x3FU);
        }
        return value;
    }

    /// <[id]> or <name>, with ! for any other token.
    void token() {
        if (peek() == '!') ++pos_;
        const size_t start = pos_;
        expect('<', "that begins a token");
        if (peek() == '[') {
            ++pos_;
            const uint64_t id = number();
            if (id >= static_cast<uint64_t>(tokenizer_.n_vocab())) {
                error("token {} is not in the vocabulary of {}", id, tokenizer_.n_vocab());
            }
            expect(']', "that closes a token");
            expect('>', "that closes a token");
            return;
        }
        const size_t end = text_.find('>', pos_);
        if (end == std::string_view::npos) error("expected > that closes a token");
        const std::string_view text = text_.substr(start, end + 1 - start);
        if (text.size() > 256 || tokenizer_.tokenize(text, false, true).size() != 1) {
            error("{} is not one token of this vocabulary", text.substr(0, 64));
        }
        pos_ = end + 1;
    }

    std::pair<uint64_t, uint64_t> repetition(bool nested) {
        const char c = peek();
        ++pos_;
        space(nested);
        if (c == '*') return {0, unbounded};
        if (c == '+') return {1, unbounded};
        if (c == '?') return {0, 1};
        const uint64_t least = number();
        uint64_t most = least;
        space(nested);
        if (peek() == ',') {
            ++pos_;
            space(nested);
            most = is_digit(peek()) ? number() : unbounded;
            space(nested);
        }
        expect('}', "that closes a repetition");
        space(nested);
        if (least > limits_.repetitions || (most != unbounded && most > limits_.repetitions)) {
            error("more than {} repetitions; {{m,}} has no upper bound", limits_.repetitions);
        }
        if (most < least) error("{{{},{}}} repeats at most less often than at least", least, most);
        return {least, most};
    }

    /// S{m,n} becomes m times S and a chain of optional rules, S* a rule that refers to itself.
    void repeat(Alternative& result, size_t last, uint64_t least, uint64_t most,
                const std::string& written) {
        const Alternative symbol(result.begin() + static_cast<std::ptrdiff_t>(last), result.end());
        const uint64_t optional = most == unbounded ? 1 : most - least;
        count(symbol.size() * static_cast<size_t>(least + optional));
        if (least == 0) result.resize(last);
        for (uint64_t i = 1; i < least; ++i) {
            result.insert(result.end(), symbol.begin(), symbol.end());
        }
        int inner = -1;
        for (uint64_t i = 0; i < optional; ++i) {
            const int id = new_rule(written);
            Alternative once = symbol;
            if (most == unbounded) once.push_back({id});
            if (inner >= 0) once.push_back({inner});
            GrammarRules::Rule& made = grammar_.rules[static_cast<size_t>(id)];
            made.alternatives = {std::move(once), {}};
            made.repeats = most == unbounded;
            inner = id;
        }
        if (inner >= 0) result.push_back({inner});
    }

    std::string_view text_;
    const Tokenizer& tokenizer_;
    const GrammarLimits& limits_;
    size_t pos_ = 0;
    size_t elements_ = 0;
    GrammarRules grammar_;
};

}  // namespace

int GrammarRules::find(std::string_view name) const {
    const auto it = names.find(name);
    return it == names.end() ? -1 : it->second;
}

GrammarRules parse_grammar(std::string_view text, const Tokenizer& tokenizer,
                           const GrammarLimits& limits) {
    return Parser(text, tokenizer, limits).parse();
}

}  // namespace pleat
