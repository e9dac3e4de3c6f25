#include "support/gbnf.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"

namespace pleat::test {

struct Gbnf::Node {
    enum class Kind : uint8_t { characters, reference, sequence, either, repeat };
    Kind kind = Kind::sequence;
    bool negated = false;
    std::vector<std::pair<char32_t, char32_t>> ranges = {};
    std::string name = {};
    std::vector<Node> parts = {};
    size_t least = 0;
    size_t most = 0;
};

namespace {

using Node = Gbnf::Node;
using Kind = Node::Kind;

std::u32string decoded(std::string_view text) {
    std::u32string result;
    for (size_t i = 0; i < text.size();) {
        const auto lead = static_cast<unsigned char>(text[i]);
        const size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
        char32_t c = length == 1 ? lead : lead & (0x7FU >> length);
        for (size_t k = 1; k < length && i + k < text.size(); ++k) {
            c = c << 6U | (static_cast<unsigned char>(text[i + k]) & 0x3FU);
        }
        result += c;
        i += length;
    }
    return result;
}

class Parser {
  public:
    explicit Parser(std::string_view text) : text_(decoded(text)) {}

    std::map<std::string, std::unique_ptr<Node>, std::less<>> parse() {
        std::map<std::string, std::unique_ptr<Node>, std::less<>> rules;
        for (space(); pos_ < text_.size(); space()) {
            const std::string name = word();
            space();
            for (const char c : {':', ':', '='}) expect(c);
            if (!rules.emplace(name, std::make_unique<Node>(either())).second) {
                fail("gbnf: rule {} comes twice", name);
            }
        }
        return rules;
    }

  private:
    char32_t peek() const { return pos_ < text_.size() ? text_[pos_] : U'\0'; }
    void expect(char c) {
        if (peek() != static_cast<char32_t>(c)) fail("gbnf: expected {} at {}", c, pos_);
        ++pos_;
    }
    void space() {
        while (peek() == ' ' || peek() == '\n') ++pos_;
    }
    static bool in_word(char32_t c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-';
    }
    std::string word() {
        std::string result;
        for (; in_word(peek()); ++pos_) result += static_cast<char>(peek());
        if (result.empty()) fail("gbnf: expected a name at {}", pos_);
        return result;
    }
    size_t number() { return std::stoul(word()); }

    Node either() {
        Node node{.kind = Kind::either};
        do {
            node.parts.push_back(sequence());
        } while (peek() == '|' && ++pos_ > 0);
        return node;
    }

    Node sequence() {
        Node node{.kind = Kind::sequence};
        for (;;) {
            while (peek() == ' ') ++pos_;
            const char32_t c = peek();
            if (c == '"') {
                node.parts.push_back(literal());
            } else if (c == '[') {
                node.parts.push_back(characters());
            } else if (c == '(') {
                ++pos_;
                Node inner = either();
                node.parts.push_back(std::move(inner));
                expect(')');
            } else if (in_word(c)) {
                node.parts.push_back({.kind = Kind::reference, .name = word()});
            } else {
                return node;
            }
            repetition(node.parts.back());
        }
    }

    void repetition(Node& node) {
        constexpr size_t unbounded = std::numeric_limits<size_t>::max();
        Node repeat{.kind = Kind::repeat};
        if (peek() == '*') {
            repeat.most = unbounded;
        } else if (peek() == '+') {
            repeat.least = 1;
            repeat.most = unbounded;
        } else if (peek() == '?') {
            repeat.most = 1;
        } else if (peek() == '{') {
            ++pos_;
            repeat.least = repeat.most = number();
            if (peek() == ',') {
                ++pos_;
                repeat.most = peek() == '}' ? unbounded : number();
            }
        } else {
            return;
        }
        ++pos_;
        repeat.parts.push_back(std::move(node));
        node = std::move(repeat);
    }

    char32_t character() {
        if (peek() != '\\') return text_[pos_++];
        ++pos_;
        const char32_t c = text_[pos_++];
        const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
        if (digits > 0) {
            std::string hex;
            for (size_t i = 0; i < digits; ++i) hex += static_cast<char>(text_[pos_++]);
            return static_cast<char32_t>(std::stoul(hex, nullptr, 16));
        }
        return c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
    }

    Node literal() {
        Node node{.kind = Kind::sequence};
        ++pos_;
        while (peek() != '"') {
            const char32_t c = character();
            node.parts.push_back({.kind = Kind::characters, .ranges = {{c, c}}});
        }
        ++pos_;
        return node;
    }

    Node characters() {
        Node node{.kind = Kind::characters};
        ++pos_;
        if (peek() == '^') {
            node.negated = true;
            ++pos_;
        }
        while (peek() != ']') {
            const char32_t first = character();
            char32_t last = first;
            if (peek() == '-' && text_[pos_ + 1] != ']') {
                ++pos_;
                last = character();
            }
            node.ranges.emplace_back(first, last);
        }
        ++pos_;
        return node;
    }

    std::u32string text_;
    size_t pos_ = 0;
};

using Ends = std::set<size_t>;

/// Where readings of a node can end that begin at given places; rules are remembered by place.
class Reading {
  public:
    Reading(const std::map<std::string, std::unique_ptr<Node>, std::less<>>& rules,
            std::u32string text)
        : rules_(rules), text_(std::move(text)) {}

    bool whole() { return rule("root", 0).contains(text_.size()); }

  private:
    const Ends& rule(const std::string& name, size_t from) {
        const auto key = std::pair(name, from);
        if (const auto known = known_.find(key); known != known_.end()) return known->second;
        const auto it = rules_.find(name);
        if (it == rules_.end()) fail("gbnf: rule {} is not defined", name);
        Ends ends = read(*it->second, {from});
        return known_[key] = std::move(ends);
    }

    Ends read(const Node& node, const Ends& from) {
        Ends to;
        switch (node.kind) {
            case Kind::characters:
                for (const size_t at : from) {
                    if (at < text_.size() && holds(node, text_[at])) to.insert(at + 1);
                }
                break;
            case Kind::reference:
                for (const size_t at : from) to.merge(Ends(rule(node.name, at)));
                break;
            case Kind::sequence:
                to = from;
                for (const Node& part : node.parts) {
                    if (to.empty()) break;
                    to = read(part, to);
                }
                break;
            case Kind::either:
                for (const Node& part : node.parts) to.merge(read(part, from));
                break;
            case Kind::repeat: {
                Ends now = from;
                if (node.least == 0) to = from;
                for (size_t n = 1; n <= node.most && !now.empty(); ++n) {
                    now = read(node.parts.front(), now);
                    if (n < node.least) continue;
                    const size_t before = to.size();
                    to.insert(now.begin(), now.end());
                    if (to.size() == before) break;
                }
                break;
            }
        }
        return to;
    }

    static bool holds(const Node& node, char32_t c) {
        for (const auto& [first, last] : node.ranges) {
            if (first <= c && c <= last) return !node.negated;
        }
        return node.negated;
    }

    const std::map<std::string, std::unique_ptr<Node>, std::less<>>& rules_;
    std::u32string text_;
    std::map<std::pair<std::string, size_t>, Ends> known_;
};

std::string encoded(char32_t c) {
    std::string result;
    const auto add = [&](char32_t byte) { result += static_cast<char>(byte); };
    if (c < 0x80) {
        add(c);
    } else if (c < 0x800) {
        add(0xC0 | c >> 6U);
    } else if (c < 0x10000) {
        add(0xE0 | c >> 12U);
        add(0x80 | (c >> 6U & 0x3FU));
    } else {
        add(0xF0 | c >> 18U);
        add(0x80 | (c >> 12U & 0x3FU));
        add(0x80 | (c >> 6U & 0x3FU));
    }
    if (c >= 0x80) add(0x80 | (c & 0x3FU));
    return result;
}

/// Writes sentences; knows how short each rule can be, so that it comes to an end.
class Writing {
  public:
    explicit Writing(const std::map<std::string, std::unique_ptr<Node>, std::less<>>& rules)
        : rules_(rules) {
        for (const auto& [name, node] : rules) shortest_[name] = far;
        for (bool changed = true; changed;) {
            changed = false;
            for (const auto& [name, node] : rules) {
                const size_t size = shortest(*node);
                changed = changed || size < shortest_[name];
                shortest_[name] = size;
            }
        }
    }

    std::string write(std::mt19937& random, size_t size) {
        text_.clear();
        size_ = size;
        node(*rules_.at("root"), random);
        return text_;
    }

  private:
    static constexpr size_t far = 1'000'000;

    size_t shortest(const Node& node) const {
        size_t size = node.kind == Kind::either ? far : 0;
        for (const Node& part : node.parts) {
            const size_t one = shortest(part);
            size = node.kind == Kind::either ? std::min(size, one) : std::min(far, size + one);
        }
        if (node.kind == Kind::characters) return 1;
        if (node.kind == Kind::reference) return shortest_.at(node.name);
        return node.kind == Kind::repeat ? std::min(far, size * node.least) : size;
    }

    void node(const Node& node, std::mt19937& random) {
        const bool hurry = text_.size() >= size_;
        const auto below = [&](size_t n) {
            return std::uniform_int_distribution<size_t>(0, n - 1)(random);
        };
        if (node.kind == Kind::characters) {
            const auto& [first, last] = node.ranges.at(below(node.ranges.size()));
            text_ += encoded(first + static_cast<char32_t>(below(last - first + 1)));
        } else if (node.kind == Kind::reference) {
            this->node(*rules_.at(node.name), random);
        } else if (node.kind == Kind::sequence) {
            for (const Node& part : node.parts) this->node(part, random);
        } else if (node.kind == Kind::either) {
            const Node* chosen = &node.parts.at(below(node.parts.size()));
            for (const Node& part : node.parts) {
                if ((hurry || shortest(*chosen) >= far) && shortest(part) < shortest(*chosen))
                    chosen = &part;
            }
            this->node(*chosen, random);
        } else {
            const size_t room = node.most - node.least;
            size_t n = node.least;
            if (!hurry && room > 0) n += below(std::min<size_t>(room, below(8) == 0 ? 100 : 3) + 1);
            for (size_t i = 0; i < n; ++i) this->node(node.parts.front(), random);
        }
    }

    const std::map<std::string, std::unique_ptr<Node>, std::less<>>& rules_;
    std::map<std::string, size_t> shortest_;
    std::string text_;
    size_t size_ = 0;
};

}  // namespace

Gbnf::Gbnf(std::string_view text) : rules_(Parser(text).parse()) {}
Gbnf::~Gbnf() = default;

bool Gbnf::accepts(std::string_view text) const { return Reading(rules_, decoded(text)).whole(); }

std::string Gbnf::sentence(std::mt19937& random, size_t size) const {
    return Writing(rules_).write(random, size);
}

}  // namespace pleat::test
