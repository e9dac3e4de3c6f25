#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "schema/grammar_text.h"

namespace pleat {

// Rules of JSON's own syntax. What begins with add_ returns the name of its rule.

/// White space between tokens, bounded: nothing, a space, or a line end and its indent.
std::string add_space(GrammarText& grammar);
/// One character of a string, escaped or not, without half surrogates.
std::string add_character(GrammarText& grammar);
std::string add_string(GrammarText& grammar);
/// Of at most 16 digits before and after the point and two of an exponent: a finite double.
std::string add_number(GrammarText& grammar);
std::string add_integer(GrammarText& grammar);

/// The body of a rule: `content` between the two characters of `brackets`. The second form also
/// allows nothing between them.
std::string bracketed(GrammarText& grammar, std::string_view brackets, const std::string& content);
std::string bracketed_or_empty(GrammarText& grammar, std::string_view brackets,
                               const std::string& content);
/// "," and white space before `item`, and `"key":` before `value`.
std::string after_comma(GrammarText& grammar, const std::string& item);
std::string keyed(GrammarText& grammar, const std::string& key, const std::string& value);

/// `text` as a JSON string with its quotes; nothing is escaped that need not be.
std::string json_string(std::string_view text);
/// The body of a rule: exactly this value, with white space where JSON allows it. Its nesting must
/// be bounded.
std::string value_body(GrammarText& grammar, const nlohmann::ordered_json& value);

}  // namespace pleat
