#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schema/charset.h"
#include "schema/grammar_text.h"

namespace pleat {

/// A regular expression as a tree; what it means is the set of whole texts it matches.
struct Regex {
    enum class Kind : uint8_t {
        characters,  ///< one of a set
        sequence,    ///< of parts; without any: the empty text
        either,      ///< one of parts
        repeat,      ///< the only part, `least` to `most` times
        begin,       ///< ^, only while parsing
        end,         ///< $
    };
    Kind kind = Kind::sequence;
    CharSet characters = {};
    std::vector<Regex> parts = {};
    uint64_t least = 0;
    std::optional<uint64_t> most = {};  ///< nothing: no bound
};

struct PatternLimits {
    size_t characters = 1000;
    int depth = 30;               ///< open groups
    uint64_t repetitions = 2000;  ///< bounds, also multiplied with those around them
    size_t nodes = 10'000;
};

/// How many characters a text may have; no `most`: any number.
struct LengthRange {
    uint64_t least = 0;
    std::optional<uint64_t> most = {};
};

/// Reads JSON Schema's `pattern` (the part of ECMAScript's regular expressions in
/// docs/json-schema.md), which may match anywhere unless it is anchored. Throws Error that says
/// what is not supported and at which character; it does not name the place in the schema.
Regex parse_pattern(std::string_view pattern, const PatternLimits& limits = {});

LengthRange length_of(const Regex& regex);
/// The same, of the texts that have such a length. Nothing when that cannot be said by changing
/// the bounds of one repetition.
std::optional<Regex> with_length(const Regex& regex, const LengthRange& range);
bool matches(const Regex& regex, std::u32string_view text);

/// The body of a rule for the inside of a JSON string whose text matches. Characters are escaped
/// only where they must be.
std::string pattern_body(GrammarText& grammar, const Regex& regex);

}  // namespace pleat
