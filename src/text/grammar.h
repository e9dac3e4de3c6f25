#pragma once

#include <string_view>

#include "text/tokenizer.h"

namespace pleat {

/// What libllama's grammar code is never given more of. It recurses per parenthesis and per chain
/// of rules, copies what is repeated, and looks for left recursion in exponential time.
struct GrammarLimits {
    size_t bytes = 256 << 10;
    int nesting = 100;  ///< open parentheses at a time
    /// Bounds in {m,n}, also multiplied by the rules that a repeated parenthesis is made of; beyond
    /// this libllama refuses the grammar or, for n alone, quietly forgets the bound.
    uint64_t repetitions = 2000;
    size_t rules = 20'000;              ///< with those made of parentheses and repetitions
    size_t elements = 500'000;          ///< characters, classes and references after repetition
    uint64_t search_steps = 5'000'000;  ///< of libllama's search for left recursion
    size_t search_depth = 3000;         ///< its deepest recursion
    /// What can be left out in a row: a step over text compares all states that this leads to with
    /// each other, from each of them.
    size_t left_out = 500;
};

/// Throws Error when `text` (GBNF, llama.cpp's grammars/README.md) does not parse, lacks `root`,
/// names a token that the vocabulary does not have, exceeds a limit, or is left-recursive, also by
/// way of rules that can be empty: libllama would expand those for ever. Messages give line and
/// character.
void check_grammar(std::string_view text, std::string_view root, const Tokenizer& tokenizer,
                   const GrammarLimits& limits = {});

}  // namespace pleat
