#include "schema/grammar_text.h"

#include <algorithm>
#include <cassert>

#include "base/error.h"

namespace pleat {
namespace {

bool is_name(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
}

std::string as_name(std::string_view wish) {
    constexpr size_t longest = 40;
    std::string name(wish.substr(0, longest));
    std::ranges::replace_if(
        name, [](char c) { return !is_name(c); }, '-');
    return name.empty() ? "rule" : name;
}

/// Past a literal or a class that begins at `pos`.
size_t end_of_quoted(std::string_view text, size_t pos) {
    const char close = text[pos] == '"' ? '"' : ']';
    for (++pos; pos < text.size() && text[pos] != close; ++pos) {
        if (text[pos] == '\\') ++pos;
    }
    return std::min(pos + 1, text.size());
}

/// Counts what one body becomes; never too little.
GrammarText::Size measure(std::string_view body) {
    GrammarText::Size size{body.size(), 1, 1};
    size_t last = 1;  // elements that a repetition would repeat
    for (size_t pos = 0; pos < body.size();) {
        const char c = body[pos];
        if (c == '"' || c == '[') {
            const size_t end = end_of_quoted(body, pos);
            last = end - pos;
            size.elements += last;
            pos = end;
        } else if (c == '{') {
            uint64_t number = 0;
            uint64_t largest = 1;
            for (++pos; pos < body.size() && body[pos] != '}'; ++pos) {
                const bool digit = body[pos] >= '0' && body[pos] <= '9';
                number = digit ? number * 10 + static_cast<uint64_t>(body[pos] - '0') : 0;
                largest = std::max(largest, number);
            }
            size.rules += largest;
            size.elements += largest * (last + 2);
        } else if (c == '*' || c == '+' || c == '?' || c == '(') {
            size.rules += 1;
            size.elements += last + 2;
            ++pos;
        } else if (is_name(c)) {
            while (pos < body.size() && is_name(body[pos])) ++pos;
            last = 1;
            size.elements += 1;
        } else {
            if (c == ')') last = 1;
            ++pos;
        }
    }
    return size;
}

constexpr uint64_t block = 64;

}  // namespace

std::string GrammarText::free_name(std::string_view wish) {
    const std::string base = as_name(wish);
    size_t& number = last_number_[base];
    for (;;) {
        ++number;
        std::string name = number == 1 ? base : fmt::format("{}-{}", base, number);
        if (!rules_.contains(name)) return name;
    }
}

void GrammarText::store(const std::string& name, std::string body) {
    const Size more = measure(body);
    size_.bytes += more.bytes + name.size() + 6;
    size_.rules += more.rules;
    size_.elements += more.elements;
    rules_[name] = std::move(body);
}

std::string GrammarText::add(std::string_view name, std::string body) {
    std::string& known = by_body_[as_name(name) + '\n' + body];
    if (known.empty()) {
        known = free_name(name);
        store(known, std::move(body));
    }
    return known;
}

std::string GrammarText::reserve(std::string_view name) {
    std::string reserved = free_name(name);
    rules_[reserved] = {};
    return reserved;
}

void GrammarText::define(const std::string& reserved, std::string body) {
    assert(rules_.contains(reserved) && rules_[reserved].empty());
    store(reserved, std::move(body));
}

std::string GrammarText::add_recursive(std::string_view name,
                                       const std::function<std::string(const std::string&)>& body) {
    const std::string key = as_name(name);  // no body is empty, so this key is free
    if (const auto known = by_body_.find(key); known != by_body_.end()) return known->second;
    std::string reserved = reserve(name);
    by_body_[key] = reserved;
    define(reserved, body(reserved));
    return reserved;
}

std::string GrammarText::text() const {
    std::string result;
    const auto line = [&](const std::string& name, const std::string& body) {
        assert(!body.empty());
        result += fmt::format("{} ::= {}\n", name, body);
    };
    const auto root = rules_.find("root");
    if (root == rules_.end()) fail("grammar: has no rule named root");
    line(root->first, root->second);
    for (const auto& [name, body] : rules_) {
        if (name != "root") line(name, body);
    }
    return result;
}

std::string GrammarText::repeat(const std::string& atom, uint64_t least,
                                std::optional<uint64_t> most) {
    if (!most && least == 0) return atom + "*";
    if (!most && least == 1) return atom + "+";
    if (most && *most == 0) return "\"\"";
    if (most && least == 1 && *most == 1) return atom;
    if (most && least == 0 && *most == 1) return atom + "?";
    if (std::max(least, most.value_or(0)) <= block) {
        if (!most) return fmt::format("{}{{{},}}", atom, least);
        if (least == *most) return fmt::format("{}{{{}}}", atom, least);
        return fmt::format("{}{{{},{}}}", atom, least, *most);
    }
    const std::string name = as_name(atom);
    if (least > 0) {
        // Whole blocks are atoms again; what is left over goes with the optional ones.
        const std::string many = add(name + "-block", fmt::format("{}{{{}}}", atom, block));
        std::string result;
        if (least >= block) result = repeat(many, least / block, least / block);
        if (least % block > 0) {
            result += (result.empty() ? "" : " ") + repeat(atom, least % block, least % block);
        }
        if (!most) return result + " " + atom + "*";
        if (*most == least) return result;
        return result + " " + repeat(atom, 0, *most - least);
    }
    // Fewer than a block, or a block and as many as remain: two readings at most at any time.
    const std::string many = add(name + "-block", fmt::format("{}{{{}}}", atom, block));
    const std::string few = fmt::format("{}{{0,{}}}", atom, block - 1);
    const std::string few_name = add(name + "-few", few);
    std::string rest = add(name + "-upto", fmt::format("{}{{0,{}}}", atom, *most % block));
    if (*most % block == 0) rest.clear();
    for (uint64_t done = *most % block; done < *most; done += block) {
        rest = add(name + "-upto",
                   fmt::format("{} | {}{}{}", few_name, many, rest.empty() ? "" : " ", rest));
    }
    return rest;
}

std::string GrammarText::literal(std::string_view bytes) {
    std::string result = "\"";
    for (const char c : bytes) {
        const auto code = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            result += {'\\', c};
        } else if (c == '\n') {
            result += "\\n";
        } else if (code < 0x20 || code == 0x7F) {
            result += fmt::format("\\x{:02X}", code);
        } else {
            result += c;
        }
    }
    return result + '"';
}

}  // namespace pleat
