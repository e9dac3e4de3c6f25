#include "schema/json_rules.h"

#include <fmt/format.h>

#include "schema/json_schema.h"

namespace pleat {

using nlohmann::ordered_json;

std::string add_space(GrammarText& grammar) {
    // Longer than any pretty-printer's indent it would only be a way to go on for ever.
    return grammar.add("ws", R"((" " | "\n" [ \t]{0,32})?)");
}

std::string add_character(GrammarText& grammar) {
    const std::string hex = grammar.add("hex", "[0-9a-fA-F]");
    const std::string unit =
        grammar.add("utf16", fmt::format(R"([0-9a-cA-CefEF] {0}{{3}} | [dD] ([0-7] {0}{{2}} | )"
                                         R"([89abAB] {0}{{2}} "\\u" [dD] [c-fC-F] {0}{{2}}))",
                                         hex));
    const std::string escape =
        grammar.add("escape", fmt::format(R"("\\" (["\\/bfnrt] | "u" {}))", unit));
    return grammar.add(
        "char", fmt::format(R"([ !#-\[\]-\x7F\u0080-\uD7FF\uE000-\U0010FFFF] | {})", escape));
}

std::string add_string(GrammarText& grammar) {
    return grammar.add("string", fmt::format(R"("\"" {}* "\"")", add_character(grammar)));
}

std::string add_integer(GrammarText& grammar) {
    return grammar.add("integer", R"("0" | "-"? [1-9] [0-9]{0,15})");
}

std::string add_number(GrammarText& grammar) {
    return grammar.add("number", R"("-"? ("0" | [1-9] [0-9]{0,15}) ("." [0-9]{1,16})? )"
                                 R"(([eE] [-+]? [0-9]{1,2})?)");
}

std::string bracketed(GrammarText& grammar, std::string_view brackets, const std::string& content) {
    const std::string space = add_space(grammar);
    return fmt::format("\"{}\" {} {} {} \"{}\"", brackets[0], space, content, space, brackets[1]);
}

std::string bracketed_or_empty(GrammarText& grammar, std::string_view brackets,
                               const std::string& content) {
    const std::string space = add_space(grammar);
    if (content.empty()) return fmt::format("\"{}\" {} \"{}\"", brackets[0], space, brackets[1]);
    return fmt::format("\"{}\" {} ({} {})? \"{}\"", brackets[0], space, content, space,
                       brackets[1]);
}

std::string after_comma(GrammarText& grammar, const std::string& item) {
    return fmt::format("\",\" {} {}", add_space(grammar), item);
}

std::string keyed(GrammarText& grammar, const std::string& key, const std::string& value) {
    return fmt::format("{} \":\" {} {}", key, add_space(grammar), value);
}

std::string json_string(std::string_view text) { return ordered_json(text).dump(); }

std::string value_body(GrammarText& grammar, const ordered_json& value) {
    if (!value.is_structured() || value.empty()) return GrammarText::literal(value.dump());
    std::string content;
    for (const auto& [key, item] : value.items()) {
        std::string one = value_body(grammar, item);
        if (value.is_object()) {
            one = keyed(grammar, GrammarText::literal(json_string(key)), one);
        }
        content += content.empty() ? one : " " + after_comma(grammar, one);
    }
    return bracketed(grammar, value.is_object() ? "{}" : "[]", content);
}

std::string add_json_value(GrammarText& grammar) {
    return grammar.add_recursive("json-value", [&](const std::string& value) {
        const auto list = [&](std::string_view brackets, const std::string& item) {
            return bracketed_or_empty(grammar, brackets,
                                      fmt::format("{} ({})*", item, after_comma(grammar, item)));
        };
        const std::string pair =
            grammar.add("json-pair", keyed(grammar, add_string(grammar), value));
        return fmt::format(R"({} | {} | {} | {} | "true" | "false" | "null")",
                           grammar.add("json-object", list("{}", pair)),
                           grammar.add("json-array", list("[]", value)), add_string(grammar),
                           add_number(grammar));
    });
}

std::string add_json_object(GrammarText& grammar) {
    const std::string value = add_json_value(grammar);
    // The same bodies as above, so the same rules.
    const std::string pair = grammar.add("json-pair", keyed(grammar, add_string(grammar), value));
    return grammar.add("json-object", bracketed_or_empty(grammar, "{}",
                                                         fmt::format("{} ({})*", pair,
                                                                     after_comma(grammar, pair))));
}

std::string json_object_grammar() {
    GrammarText grammar;
    grammar.add("root", add_json_object(grammar));
    return grammar.text();
}

}  // namespace pleat
