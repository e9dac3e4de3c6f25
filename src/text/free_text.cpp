#include "text/free_text.h"

#include <algorithm>
#include <deque>
#include <map>

#include "base/error.h"
#include "text/utf8_stream.h"

namespace pleat {
namespace {

/// Of valid UTF-8.
std::u32string code_points(std::string_view text) {
    std::u32string result;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if ((byte & 0xC0) == 0x80) {
            result.back() = result.back() << 6 | (byte & 0x3FU);
        } else {
            result += byte < 0x80   ? byte
                      : byte < 0xE0 ? byte & 0x1FU
                                    : byte & (0x3FU >> (byte >= 0xF0 ? 3 : 2));
        }
    }
    return result;
}

/// As it stands in a class of characters.
std::string in_class(char32_t c) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (plain) return std::string(1, static_cast<char>(c));
    return fmt::format("\\U{:08X}", static_cast<uint32_t>(c));
}

struct State {
    std::map<char32_t, size_t> next;  ///< of the tree, then of the automaton
    size_t fallback = 0;
    bool whole = false;  ///< a mark ends here
};

std::vector<State> automaton(std::span<const std::string> marks) {
    std::vector<State> states(1);
    for (const std::string& mark : marks) {
        size_t at = 0;
        for (const char32_t c : code_points(mark)) {
            const auto [step, is_new] = states[at].next.try_emplace(c, states.size());
            at = step->second;
            if (is_new) states.emplace_back();
        }
        states[at].whole = true;
    }
    // By length, so that where a state falls back to is complete before the state itself.
    std::deque<size_t> queue{0};
    while (!queue.empty()) {
        const size_t at = queue.front();
        queue.pop_front();
        const size_t fallback = states[at].fallback;
        for (const auto& [c, child] : states[at].next) {
            const auto& others = states[fallback].next;
            const auto other = others.find(c);
            if (at != 0 && other != others.end()) states[child].fallback = other->second;
            states[child].whole = states[child].whole || states[states[child].fallback].whole;
            queue.push_back(child);
        }
        if (at != 0)
            states[at].next.insert(states[fallback].next.begin(), states[fallback].next.end());
    }
    return states;
}

}  // namespace

std::vector<GrammarRule> free_text_rules(std::string_view prefix,
                                         std::span<const std::string> marks,
                                         std::string_view after_mark, std::string_view anywhere) {
    const std::vector<State> states = automaton(marks);
    const auto name = [&](size_t state) { return fmt::format("{}-{}", prefix, state); };
    std::vector<GrammarRule> rules;
    for (size_t i = 0; i < states.size(); ++i) {
        // Behind a mark nothing is free any more.
        if (states[i].whole) continue;
        std::string body;
        std::string others;
        for (const auto& [c, next] : states[i].next) {
            others += in_class(c);
            const std::string then = states[next].whole ? std::string(after_mark) : name(next);
            if (!then.empty()) body += fmt::format("[{}] {} | ", in_class(c), then);
        }
        body += fmt::format("[^{}] {}", others, name(0));
        if (!anywhere.empty()) body += fmt::format(" | {}", anywhere);
        rules.push_back({name(i), std::move(body)});
    }
    return rules;
}

GrammarConstraint eager_constraint(const GrammarConstraint& lazy) {
    for (const std::string& trigger : lazy.triggers) {
        if (trigger.empty() || !is_utf8(trigger)) {
            fail("a trigger of a grammar must be a text that is not empty");
        }
    }
    std::string prefix = "free";
    while (lazy.text.find(prefix) != std::string::npos) prefix += "-x";
    GrammarConstraint eager{.text = lazy.text + "\n", .root = prefix + "-0"};
    for (const GrammarRule& rule :
         free_text_rules(prefix, lazy.triggers, "", fmt::format("\"\" | {}", lazy.root))) {
        eager.text += fmt::format("{} ::= {}\n", rule.name, rule.body);
    }
    return eager;
}

}  // namespace pleat
