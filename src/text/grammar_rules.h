#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "text/grammar.h"

namespace pleat {

/// A grammar as far as its limits need it: which rule refers to which. Parentheses and repetitions
/// have become rules of their own, in libllama's way.
struct GrammarRules {
    /// One step of an alternative: a reference, or characters and tokens (`rule` < 0).
    struct Item {
        int rule = -1;
        bool operator==(const Item&) const = default;
    };
    using Alternative = std::vector<Item>;
    struct Rule {
        std::string name;  ///< of the written rule it belongs to
        std::vector<Alternative> alternatives;
        bool repeats = false;  ///< a repetition without an upper bound
    };

    std::vector<Rule> rules;
    std::map<std::string, int, std::less<>> names;

    /// -1 when there is none.
    int find(std::string_view name) const;
};

/// Throws Error with line and character when the text is not GBNF, and when a limit is exceeded.
GrammarRules parse_grammar(std::string_view text, const Tokenizer& tokenizer,
                           const GrammarLimits& limits);

/// Throws Error that names a rule of the recursion.
void check_left_recursion(const GrammarRules& rules, const GrammarLimits& limits);

}  // namespace pleat
