#include "schema/pattern.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "schema/json_rules.h"

namespace pleat {
namespace {

using Kind = Regex::Kind;

size_t count_nodes(const Regex& regex) {
    size_t count = 1;
    for (const Regex& part : regex.parts) count += count_nodes(part);
    return count;
}

bool can_be_empty(const Regex& regex) { return length_of(regex).least == 0; }

/// The texts of `regex` without the empty one: what may be repeated in a grammar, where a
/// repetition of nothing would go on for ever. An `either` without parts when none is left.
Regex not_empty(const Regex& regex, size_t& nodes) {
    // Parts are copied, so what a short pattern leads to can be large.
    nodes += count_nodes(regex);
    if (nodes > PatternLimits().nodes) fail("repeats too much that can be empty");
    if (!can_be_empty(regex)) return regex;
    Regex result{.kind = Kind::either};
    const auto keep = [&](Regex part) {
        if (part.kind == Kind::either) {
            for (Regex& inner : part.parts) result.parts.push_back(std::move(inner));
        } else {
            result.parts.push_back(std::move(part));
        }
    };
    if (regex.kind == Kind::either) {
        for (const Regex& part : regex.parts) keep(not_empty(part, nodes));
    } else if (regex.kind == Kind::repeat && regex.most != 0) {
        Regex inner = not_empty(regex.parts.front(), nodes);
        if (inner.kind != Kind::either || !inner.parts.empty()) {
            Regex repeated{.kind = Kind::repeat, .least = 1, .most = regex.most};
            repeated.parts.push_back(std::move(inner));
            keep(std::move(repeated));
        }
    } else if (regex.kind == Kind::sequence) {
        // The first part that is not empty, and whatever follows it.
        for (size_t i = 0; i < regex.parts.size(); ++i) {
            Regex first = not_empty(regex.parts[i], nodes);
            if (first.kind == Kind::either && first.parts.empty()) continue;
            Regex rest{.kind = Kind::sequence};
            rest.parts.push_back(std::move(first));
            nodes += count_nodes(regex);
            rest.parts.insert(rest.parts.end(), regex.parts.begin() + static_cast<ptrdiff_t>(i) + 1,
                              regex.parts.end());
            keep(std::move(rest));
        }
    }
    if (result.parts.size() == 1) return Regex(result.parts.front());
    return result;
}

std::string class_text(const CharSet& set) {
    const auto character = [](char32_t c) {
        const bool plain =
            (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        if (plain) return std::string(1, static_cast<char>(c));
        if (c < 0x80) return fmt::format("\\x{:02X}", static_cast<uint32_t>(c));
        if (c < 0x10000) return fmt::format("\\u{:04X}", static_cast<uint32_t>(c));
        return fmt::format("\\U{:08X}", static_cast<uint32_t>(c));
    };
    std::string result = "[";
    for (const auto& [first, last] : set.ranges()) {
        result += character(first);
        if (last > first) result += '-' + character(last);
    }
    return result + ']';
}

/// Writes a tree as the body of a rule. What a function returns can stand in a sequence.
class Writer {
  public:
    explicit Writer(GrammarText& grammar) : grammar_(grammar) {}

    std::string body(const Regex& regex) {
        if (regex.kind == Kind::either) return alternatives(regex);
        if (regex.kind == Kind::sequence) return sequence(regex);
        return atom(regex);
    }

  private:
    std::string alternatives(const Regex& regex) {
        std::string result;
        for (const Regex& part : regex.parts) {
            if (!result.empty()) result += " | ";
            result += part.kind == Kind::either ? atom(part) : body(part);
        }
        return result.empty() ? "\"\"" : result;
    }

    std::string sequence(const Regex& regex) {
        std::string result;
        std::string plain;  // characters that come one after the other become one literal
        const auto add = [&](const std::string& text) {
            if (!result.empty()) result += ' ';
            result += text;
        };
        const auto flush = [&] {
            if (!plain.empty()) add(GrammarText::literal(plain));
            plain.clear();
        };
        for (const Regex& part : regex.parts) {
            if (part.kind == Kind::characters && part.characters.single()) {
                const std::string quoted = json_string(utf8(part.characters.ranges()[0].first));
                plain += quoted.substr(1, quoted.size() - 2);
                continue;
            }
            flush();
            add(part.kind == Kind::sequence ? sequence(part) : atom(part));
        }
        flush();
        return result.empty() ? "\"\"" : result;
    }

    std::string atom(const Regex& regex) {
        if (regex.kind == Kind::characters) return characters(regex.characters);
        if (regex.kind == Kind::repeat) return repeat(regex);
        return '(' + body(regex) + ')';
    }

    std::string repeat(const Regex& regex) {
        const Regex& part = regex.parts.front();
        uint64_t least = regex.least;
        Regex inner = part;
        if (can_be_empty(part)) {
            least = 0;
            inner = not_empty(part, nodes_);
            if (inner.kind == Kind::either && inner.parts.empty()) return "\"\"";
        }
        const bool counted = least > 1 || regex.most.value_or(1) > 1;
        std::string repeated;
        if (inner.kind == Kind::characters) {
            repeated = atom(inner);
            // A literal counts its bytes as symbols of their own.
            if (repeated.front() == '"') repeated = '(' + repeated + ')';
        } else if (counted || inner.kind == Kind::repeat) {
            // As a rule it counts as one thing, however large.
            repeated = grammar_.add("part", body(inner));
        } else {
            repeated = '(' + body(inner) + ')';
        }
        return grammar_.repeat(repeated, least, regex.most);
    }

    std::string characters(const CharSet& set) {
        const CharSet control{{0, 0x1F}};
        const CharSet escaped{{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};
        const CharSet plain = set.without(escaped);
        std::vector<std::string> pieces;
        if (plain.single()) {
            pieces.push_back(GrammarText::literal(utf8(plain.ranges()[0].first)));
        } else if (!plain.empty()) {
            pieces.push_back(class_text(plain));
        }
        const bool all_control = control.without(set).empty();
        if (all_control) {
            pieces.push_back(grammar_.add(
                "control", R"("\\" ([bfnrt] | "u00" ("0" [0-7bBeEfF] | "1" [0-9a-fA-F])))"));
        }
        for (const auto& [first, last] : escaped.ranges()) {
            for (char32_t c = first; c <= last; ++c) {
                if (!set.contains(c) || (all_control && control.contains(c))) continue;
                const std::string quoted = json_string(utf8(c));
                pieces.push_back(GrammarText::literal(quoted.substr(1, quoted.size() - 2)));
            }
        }
        if (pieces.size() == 1) return pieces.front();
        std::string body;
        for (const std::string& piece : pieces) body += (body.empty() ? "" : " | ") + piece;
        return grammar_.add("chars", body);
    }

    GrammarText& grammar_;
    size_t nodes_ = 0;
};

}  // namespace

LengthRange length_of(const Regex& regex) {
    constexpr uint64_t large = uint64_t{1} << 40;  // keeps products of bounds far from overflow
    LengthRange range{0, 0};
    if (regex.kind == Kind::characters) return {1, 1};
    if (regex.kind == Kind::repeat) {
        const LengthRange part = length_of(regex.parts.front());
        range.least = std::min(large, part.least * regex.least);
        if (part.most == 0 || regex.most == 0) return {range.least, 0};
        range.most.reset();
        if (part.most && regex.most) range.most = std::min(large, *part.most * *regex.most);
        return range;
    }
    if (regex.kind == Kind::either && !regex.parts.empty()) range.least = large;
    for (const Regex& inner : regex.parts) {
        const LengthRange part = length_of(inner);
        if (regex.kind == Kind::either) {
            range.least = std::min(range.least, part.least);
            if (range.most) range.most = part.most ? std::max(*range.most, *part.most) : part.most;
        } else {
            range.least = std::min(large, range.least + part.least);
            if (range.most) {
                range.most = part.most ? std::min(large, *range.most + *part.most) : part.most;
            }
        }
    }
    return range;
}

std::optional<Regex> with_length(const Regex& regex, const LengthRange& range) {
    const LengthRange own = length_of(regex);
    const bool fits =
        own.least >= range.least && (!range.most || (own.most && *own.most <= *range.most));
    if (fits) return regex;
    Regex result = regex;
    if (result.kind != Kind::sequence) {
        result = {.kind = Kind::sequence};
        result.parts.push_back(regex);
    }
    // All but one part must have one length, and that one must repeat a single character.
    Regex* changed = nullptr;
    uint64_t fixed = 0;
    for (Regex& part : result.parts) {
        const LengthRange length = length_of(part);
        if (length.most == length.least) {
            fixed += length.least;
        } else if (changed == nullptr && part.kind == Kind::repeat &&
                   part.parts.front().kind == Kind::characters) {
            changed = &part;
        } else {
            return {};
        }
    }
    if (changed == nullptr || (range.most && *range.most < fixed)) return {};
    changed->least = std::max(changed->least, range.least > fixed ? range.least - fixed : 0);
    if (range.most) {
        const uint64_t most = *range.most - fixed;
        changed->most = std::min(most, changed->most.value_or(most));
    }
    if (changed->most && *changed->most < changed->least) return {};
    return result;
}

namespace {

using Positions = std::vector<bool>;  // [text size + 1]: where a match can end

Positions step(const Regex& regex, std::u32string_view text, const Positions& from) {
    Positions to(from.size(), false);
    if (regex.kind == Kind::characters) {
        for (size_t i = 0; i < text.size(); ++i) {
            to[i + 1] = from[i] && regex.characters.contains(text[i]);
        }
    } else if (regex.kind == Kind::sequence) {
        to = from;
        for (const Regex& part : regex.parts) to = step(part, text, to);
    } else if (regex.kind == Kind::either) {
        for (const Regex& part : regex.parts) {
            const Positions one = step(part, text, from);
            for (size_t i = 0; i < to.size(); ++i) to[i] = to[i] || one[i];
        }
    } else {
        Positions now = from;
        for (uint64_t n = 0; n < regex.least; ++n) now = step(regex.parts.front(), text, now);
        to = now;
        for (uint64_t n = regex.least; !regex.most || n < *regex.most; ++n) {
            now = step(regex.parts.front(), text, now);
            bool news = false;
            for (size_t i = 0; i < to.size(); ++i) {
                news = news || (now[i] && !to[i]);
                to[i] = to[i] || now[i];
            }
            if (!news) break;
        }
    }
    return to;
}

}  // namespace

bool matches(const Regex& regex, std::u32string_view text) {
    Positions start(text.size() + 1, false);
    start[0] = true;
    return step(regex, text, start).back();
}

std::string pattern_body(GrammarText& grammar, const Regex& regex) {
    return Writer(grammar).body(regex);
}

}  // namespace pleat
