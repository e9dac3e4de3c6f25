#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "text/grammar_rules.h"

namespace pleat {
namespace {

using Rules = std::vector<GrammarRules::Rule>;

const GrammarRules::Rule& at(const Rules& rules, int id) { return rules[static_cast<size_t>(id)]; }

/// Rules that can produce nothing. `through_others`: also when that takes several steps; libllama's
/// own search sees only a literally empty alternative.
std::vector<bool> empty_rules(const Rules& rules, bool through_others) {
    std::vector<bool> empty(rules.size(), false);
    // A rule is looked at again only when one that it refers to has changed.
    std::vector<std::vector<size_t>> users(rules.size());
    std::vector<size_t> todo;
    for (size_t i = 0; i < rules.size(); ++i) {
        todo.push_back(i);
        for (const auto& alternative : rules[i].alternatives) {
            for (const auto& item : alternative) {
                if (item.rule >= 0) users[static_cast<size_t>(item.rule)].push_back(i);
            }
        }
    }
    const auto vanishes = [&](const GrammarRules::Alternative& alternative) {
        return std::ranges::all_of(alternative, [&](const GrammarRules::Item& item) {
            return through_others && item.rule >= 0 && empty[static_cast<size_t>(item.rule)];
        });
    };
    while (!todo.empty()) {
        const size_t i = todo.back();
        todo.pop_back();
        if (empty[i] || !std::ranges::any_of(rules[i].alternatives, vanishes)) continue;
        empty[i] = true;
        if (through_others) todo.insert(todo.end(), users[i].begin(), users[i].end());
    }
    return empty;
}

/// A reference that can be the first thing of its rule.
struct Edge {
    int to = 0;
    bool grows = false;  ///< something follows it, which an expansion has to remember
};

std::vector<std::vector<Edge>> first_references(const Rules& rules,
                                                const std::vector<bool>& empty) {
    std::vector<std::vector<Edge>> edges(rules.size());
    for (size_t i = 0; i < rules.size(); ++i) {
        for (const auto& alternative : rules[i].alternatives) {
            for (size_t k = 0; k < alternative.size(); ++k) {
                const int to = alternative[k].rule;
                if (to < 0) break;
                edges[i].push_back({to, k + 1 < alternative.size()});
                if (!empty[static_cast<size_t>(to)]) break;
            }
        }
    }
    return edges;
}

/// Walks depth first without recursion; `leave` sees a rule after all that it leads to, `back` an
/// edge from a rule into one that is still open.
template <typename Leave, typename Back>
void walk(const std::vector<std::vector<Edge>>& edges, Leave leave, Back back) {
    enum class State : uint8_t { fresh, open, done };
    std::vector<State> state(edges.size(), State::fresh);
    struct Frame {
        int rule;
        size_t next;
    };
    std::vector<Frame> stack;
    for (size_t root = 0; root < edges.size(); ++root) {
        if (state[root] != State::fresh) continue;
        state[root] = State::open;
        stack.push_back({static_cast<int>(root), 0});
        while (!stack.empty()) {
            Frame& frame = stack.back();
            const auto i = static_cast<size_t>(frame.rule);
            if (frame.next == edges[i].size()) {
                state[i] = State::done;
                leave(frame.rule);
                stack.pop_back();
                continue;
            }
            const Edge edge = edges[i][frame.next++];
            State& target = state[static_cast<size_t>(edge.to)];
            if (target == State::open) back(frame.rule, edge);
            if (target != State::fresh) continue;
            target = State::open;
            stack.push_back({edge.to, 0});
        }
    }
}

[[noreturn]] void fail_recursive(const Rules& rules, int rule) {
    fail(
        "grammar: rule {} is left-recursive: it can begin with itself; put something before the "
        "repetition, or write it with * or +",
        at(rules, rule).name);
}

/// libllama refuses what this finds, but only after a search whose time can double with each rule.
void check_as_libllama(const Rules& rules, const GrammarLimits& limits) {
    const auto edges = first_references(rules, empty_rules(rules, false));
    std::vector<uint64_t> steps(rules.size(), 0);
    std::vector<size_t> depth(rules.size(), 0);
    uint64_t total = 0;
    walk(
        edges,
        [&](int rule) {
            const auto i = static_cast<size_t>(rule);
            steps[i] = 1;
            for (const Edge& edge : edges[i]) {
                const auto to = static_cast<size_t>(edge.to);
                steps[i] = std::min(limits.search_steps, steps[i] + steps[to]);
                depth[i] = std::max(depth[i], depth[to] + 1);
            }
            total += steps[i];
            if (depth[i] > limits.search_depth) {
                fail("grammar: rule {} begins a chain of more than {} rules", at(rules, rule).name,
                     limits.search_depth);
            }
            if (total > limits.search_steps) {
                fail("grammar: rule {} can begin in more than {} ways", at(rules, rule).name,
                     limits.search_steps);
            }
        },
        [&](int from, const Edge& edge) {
            if (from == edge.to && at(rules, from).repeats) {
                fail(
                    "grammar: rule {} repeats something that can be empty, which would never end; "
                    "repeat what cannot be empty",
                    at(rules, from).name);
            }
            fail_recursive(rules, edge.to);
        });
}

/// A cycle through rules that can be empty is not seen by libllama's search. It does no harm as
/// long as nothing has to be remembered on the way round; otherwise the expansion never ends.
void check_hidden(const Rules& rules) {
    const auto edges = first_references(rules, empty_rules(rules, true));
    // Kosaraju: rules in the order in which they are left, then backwards along reversed edges.
    std::vector<int> order;
    walk(
        edges, [&](int rule) { order.push_back(rule); }, [](int, const Edge&) {});
    std::vector<std::vector<int>> reversed(rules.size());
    for (size_t i = 0; i < rules.size(); ++i) {
        for (const Edge& edge : edges[i]) {
            reversed[static_cast<size_t>(edge.to)].push_back(static_cast<int>(i));
        }
    }
    std::vector<int> component(rules.size(), -1);
    std::vector<int> todo;
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
        if (component[static_cast<size_t>(*it)] < 0) todo.push_back(*it);
        while (!todo.empty()) {
            const auto i = static_cast<size_t>(todo.back());
            todo.pop_back();
            if (component[i] >= 0) continue;
            component[i] = *it;
            todo.insert(todo.end(), reversed[i].begin(), reversed[i].end());
        }
    }
    for (size_t i = 0; i < rules.size(); ++i) {
        for (const Edge& edge : edges[i]) {
            const bool cycle = component[i] == component[static_cast<size_t>(edge.to)];
            if (cycle && edge.grows) fail_recursive(rules, edge.to);
        }
    }
}

/// ("a"? "b"?)? leaves out up to two things before the next. In repetitions of each other such
/// numbers multiply, and libllama's time for one token grows with their third power.
void check_left_out(const Rules& rules, const GrammarLimits& limits) {
    const std::vector<bool> empty = empty_rules(rules, true);
    std::vector<size_t> ways(rules.size(), 0);  // from the rule's beginning to a character
    const auto longest_run = [&](const GrammarRules::Alternative& alternative, bool anywhere) {
        size_t run = 0;
        size_t longest = 0;
        for (auto item = alternative.rbegin(); item != alternative.rend(); ++item) {
            const auto to = static_cast<size_t>(item->rule);
            const bool stays = item->rule < 0 || !empty[to];
            run = (stays ? 0 : run) + (item->rule < 0 ? 1 : ways[to]);
            longest = std::max(longest, run);
        }
        return anywhere ? longest : run;
    };
    const auto check = [&](size_t i, size_t run) {
        if (run <= limits.left_out) return;
        fail("grammar: rule {} can leave out more than {} things in a row", rules[i].name,
             limits.left_out);
    };
    walk(
        first_references(rules, empty),
        [&](int rule) {
            const auto i = static_cast<size_t>(rule);
            for (const auto& alternative : rules[i].alternatives) {
                ways[i] = std::max(ways[i], longest_run(alternative, false));
            }
            check(i, ways[i]);
        },
        [](int, const Edge&) {});
    for (size_t i = 0; i < rules.size(); ++i) {
        for (const auto& alternative : rules[i].alternatives) {
            check(i, longest_run(alternative, true));
        }
    }
}

}  // namespace

void check_left_recursion(const GrammarRules& rules, const GrammarLimits& limits) {
    check_as_libllama(rules.rules, limits);
    check_hidden(rules.rules);
    check_left_out(rules.rules, limits);
}

}  // namespace pleat
