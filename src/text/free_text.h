#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/sampling_params.h"

namespace pleat {

struct GrammarRule {
    std::string name;
    std::string body;  ///< GBNF
};

/// Rules of a text that goes on freely until one of `marks` stands in it: the automaton of Aho and
/// Corasick (1975) as right-recursive GBNF, which libllama runs with a stack that does not grow.
/// `after_mark` is what follows a whole mark; empty: no mark may become whole. `anywhere` may
/// follow at every point; empty: nothing, so that the text has to go on. The first rule is the
/// beginning; all names begin with `prefix`. Marks are UTF-8, none is empty.
std::vector<GrammarRule> free_text_rules(std::string_view prefix,
                                         std::span<const std::string> marks,
                                         std::string_view after_mark, std::string_view anywhere);

/// A constraint with triggers as one without: any text in which no trigger stands, and from the
/// beginning of the first one on what the grammar allows.
GrammarConstraint eager_constraint(const GrammarConstraint& lazy);

}  // namespace pleat
