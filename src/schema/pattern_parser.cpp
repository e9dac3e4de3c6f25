#include <algorithm>

#include "base/error.h"
#include "schema/pattern.h"

namespace pleat {
namespace {

using Kind = Regex::Kind;

bool is_digit(char32_t c) { return c >= '0' && c <= '9'; }
bool is_letter(char32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

CharSet class_of(char32_t letter) {
    switch (letter) {
        case 'd':
            return {{'0', '9'}};
        case 'w':
            return {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}, {'_', '_'}};
        case 's':
            return {{'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680},
                    {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
                    {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
        case 'D':
            return class_of('d').complement();
        case 'W':
            return class_of('w').complement();
        case 'S': {  // nor what only Python takes for white space
            CharSet space = class_of('s');
            space.add(0x1C, 0x1F);
            space.add(0x85, 0x85);
            return space.complement();
        }
        default:
            return {};
    }
}

Regex one_of(CharSet characters) {
    return {.kind = Kind::characters, .characters = std::move(characters)};
}

class Parser {
  public:
    Parser(std::u32string_view text, const PatternLimits& limits) : text_(text), limits_(limits) {}

    Regex parse() {
        Regex result = either(0);
        if (pos_ < text_.size()) error(") without its (");
        return result;
    }

  private:
    char32_t peek(size_t ahead = 0) const {
        return pos_ + ahead < text_.size() ? text_[pos_ + ahead] : U'\0';
    }
    bool at_end() const { return pos_ >= text_.size(); }
    bool take(char32_t c) {
        if (at_end() || text_[pos_] != c) return false;
        ++pos_;
        return true;
    }

    [[noreturn]] void error(std::string_view what) const {
        fail("character {}: {}", std::min(pos_, text_.size()) + 1, what);
    }

    Regex either(int depth) {
        if (depth > limits_.depth) error(fmt::format("more than {} open groups", limits_.depth));
        Regex result{.kind = Kind::either};
        do {
            result.parts.push_back(sequence(depth));
        } while (take('|'));
        if (result.parts.size() == 1) return std::move(result.parts.front());
        return result;
    }

    Regex sequence(int depth) {
        Regex result{.kind = Kind::sequence};
        while (!at_end() && peek() != '|' && peek() != ')') {
            if (++nodes_ > limits_.nodes) error("too long");
            result.parts.push_back(quantified(atom(depth)));
        }
        return result;
    }

    Regex quantified(Regex atom) {
        const size_t start = pos_;
        Regex result{.kind = Kind::repeat};
        if (take('*')) {
            result.least = 0;
        } else if (take('+')) {
            result.least = 1;
        } else if (take('?')) {
            result.most = 1;
        } else if (take('{')) {
            result.least = number();
            if (!take(',')) {
                result.most = result.least;
            } else if (peek() != '}') {
                result.most = number();
            }
            if (!take('}')) error("expected } after the bounds of a repetition");
        } else {
            return atom;
        }
        take('?');  // a lazy repetition matches the same texts
        const bool bound = result.most && *result.most < result.least;
        pos_ = bound ? start : pos_;
        if (bound) error("repeats at most less often than at least");
        if (atom.kind == Kind::begin || atom.kind == Kind::end) error("repeats an anchor");
        if (peek() == '*' || peek() == '+' || peek() == '?' || peek() == '{') {
            error("a repetition right after a repetition is not supported");
        }
        result.parts.push_back(std::move(atom));
        return result;
    }

    uint64_t number() {
        if (!is_digit(peek()))
            error("expected the bounds of a repetition, as in {2,5}; write \\{ for the character");
        uint64_t value = 0;
        for (; is_digit(peek()); ++pos_) {
            value = std::min(value * 10 + (peek() - U'0'), limits_.repetitions + 1);
        }
        if (value > limits_.repetitions) {
            error(fmt::format("more than {} repetitions", limits_.repetitions));
        }
        return value;
    }

    Regex atom(int depth) {
        const char32_t c = peek();
        switch (c) {
            case '(':
                return group(depth);
            case '[':
                return one_of(bracket());
            case '\\':
                return one_of(escape(false));
            case '^':
                ++pos_;
                return {.kind = Kind::begin};
            case '$':
                ++pos_;
                return {.kind = Kind::end};
            case '.':
                ++pos_;
                return one_of(CharSet{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}.complement());
            case '*':
            case '+':
            case '?':
            case '{':
                error("nothing to repeat");
            case ']':
            case '}':
                error("write \\] or \\} for the character");
            default:
                ++pos_;
                return one_of({{c, c}});
        }
    }

    Regex group(int depth) {
        const size_t start = pos_++;
        if (take('?')) {
            if (take('<') && peek() != '=' && peek() != '!') {
                while (!at_end() && peek() != '>') ++pos_;
                if (!take('>')) error("expected > after the name of a group");
            } else if (!take(':')) {
                pos_ = start;
                error("only groups ( ), (?: ) and (?<name> ) are supported");
            }
        }
        Regex inside = either(depth + 1);
        if (!take(')')) {
            pos_ = start;
            error("( without its )");
        }
        return inside;
    }

    char32_t hex(size_t digits) {
        char32_t value = 0;
        for (size_t i = 0; i < digits; ++i, ++pos_) {
            const char32_t c = peek();
            const char32_t low = c | 0x20U;
            if (!is_digit(c) && !(low >= 'a' && low <= 'f')) error("expected a hexadecimal digit");
            value = value * 16 + (is_digit(c) ? c - '0' : low - 'a' + 10);
        }
        return value;
    }

    CharSet escape(bool in_class) {
        const size_t start = pos_++;
        const char32_t c = peek();
        if (at_end()) error("\\ at the end");
        ++pos_;
        CharSet set = class_of(c);
        if (!set.empty()) return set;
        char32_t value = c;
        if (c == 't') {
            value = '\t';
        } else if (c == 'n') {
            value = '\n';
        } else if (c == 'r') {
            value = '\r';
        } else if (c == 'f') {
            value = '\f';
        } else if (c == 'v') {
            value = '\v';
        } else if (c == 'b' && in_class) {
            value = '\b';
        } else if (c == '0' && !is_digit(peek())) {
            value = 0;
        } else if (c == 'x') {
            value = hex(2);
        } else if (c == 'u' && take('{')) {
            size_t digits = 0;
            while (peek(digits) != '}' && pos_ + digits < text_.size()) ++digits;
            if (digits == 0 || digits > 6) error("expected one to six hexadecimal digits");
            value = hex(digits);
            ++pos_;
        } else if (c == 'u') {
            value = hex(4);
        } else if (is_letter(c) || is_digit(c)) {
            pos_ = start;
            error(fmt::format("\\{} is not supported", utf8(c)));
        }
        if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) {
            pos_ = start;
            error("is not a character");
        }
        return {{value, value}};
    }

    CharSet bracket() {
        const size_t start = pos_++;
        const bool negated = take('^');
        CharSet set;
        if (peek() == ']') error("an empty class is not supported; write \\] for the character");
        while (peek() != ']') {
            if (at_end()) {
                pos_ = start;
                error("[ without its ]");
            }
            const CharSet first = class_member();
            if (peek() == '-' && peek(1) != ']') {
                ++pos_;
                if (at_end()) continue;
                const CharSet last = class_member();
                if (!first.single() || !last.single()) error("a range between classes");
                const char32_t low = first.ranges().front().first;
                const char32_t high = last.ranges().front().first;
                if (high < low) error("a range whose end comes before its start");
                // Surrogates in between are no characters.
                CharSet range{{low, high}};
                set.add(CharSet::all().without(range.complement()));
            } else {
                set.add(first);
            }
        }
        ++pos_;
        if (negated) set = set.complement();
        if (set.empty()) {
            pos_ = start;
            error("a class that holds no character");
        }
        return set;
    }

    CharSet class_member() {
        if (peek() == '\\') return escape(true);
        const char32_t c = peek();
        ++pos_;
        return {{c, c}};
    }

    std::u32string_view text_;
    const PatternLimits& limits_;
    size_t pos_ = 0;
    size_t nodes_ = 0;
};

bool has_anchor(const Regex& regex) {
    return regex.kind == Kind::begin || regex.kind == Kind::end ||
           std::ranges::any_of(regex.parts, has_anchor);
}

/// Puts "any text" where an end is open, and takes the anchors out.
Regex whole(Regex regex, bool from_start, bool to_end) {
    if (regex.kind != Kind::sequence && regex.kind != Kind::either) {
        Regex alone{.kind = Kind::sequence};
        alone.parts.push_back(std::move(regex));
        regex = std::move(alone);
    }
    if (regex.kind == Kind::either) {
        for (Regex& part : regex.parts) part = whole(std::move(part), from_start, to_end);
        return regex;
    }
    std::vector<Regex>& parts = regex.parts;
    while (!parts.empty() && parts.front().kind == Kind::begin) {
        from_start = true;
        parts.erase(parts.begin());
    }
    while (!parts.empty() && parts.back().kind == Kind::end) {
        to_end = true;
        parts.pop_back();
    }
    if (parts.size() == 1 && has_anchor(parts.front()) && parts.front().kind != Kind::repeat) {
        Regex inner = std::move(parts.front());
        return whole(std::move(inner), from_start, to_end);
    }
    if (has_anchor(regex)) fail("^ and $ are supported only at the ends of the pattern");
    Regex any{.kind = Kind::repeat};
    any.parts.push_back(one_of(CharSet::all()));
    if (parts.empty() && !(from_start && to_end)) return any;
    if (!from_start) parts.insert(parts.begin(), any);
    if (!to_end) parts.push_back(any);
    return regex;
}

void check_repetitions(const Regex& regex, uint64_t around, const PatternLimits& limits) {
    if (regex.kind == Kind::repeat) {
        around *= std::max<uint64_t>({1, regex.least, regex.most.value_or(1)});
        if (around > limits.repetitions) {
            fail("repetitions in each other come to more than {}", limits.repetitions);
        }
    }
    for (const Regex& part : regex.parts) check_repetitions(part, around, limits);
}

}  // namespace

Regex parse_pattern(std::string_view pattern, const PatternLimits& limits) {
    const std::u32string text = utf32(pattern);
    if (text.size() > limits.characters) {
        fail("has {} characters, at most {}", text.size(), limits.characters);
    }
    Regex regex = whole(Parser(text, limits).parse(), false, false);
    check_repetitions(regex, 1, limits);
    return regex;
}

}  // namespace pleat
