#include "chat/qwen35_grammar.h"

#include "base/error.h"
#include "chat/object_schema.h"
#include "schema/json_schema.h"
#include "text/free_text.h"

namespace pleat {
namespace {

constexpr std::string_view value_end = "</parameter>";

std::string literal(std::string_view text) { return GrammarText::literal(text); }

std::string add_parameter(GrammarText& grammar, const Property& property) {
    if (property.name.empty() || property.name.find_first_of("<>\n") != std::string::npos) {
        fail("this model's form of tool calls cannot write its name");
    }
    const std::string head = literal(fmt::format("<parameter={}>\n", property.name));
    const auto texts = bare_texts(property.schema);
    if (texts && texts->empty()) return grammar.add("parameter", head + " value-0 \"\\n\"");
    std::string value;
    if (texts) {
        for (const std::string& text : *texts)
            value += (value.empty() ? "" : " | ") + literal(text);
        value = grammar.add("one-of", value);
    } else {
        value = add_json_schema(grammar, property.schema);
    }
    return grammar.add("parameter",
                       fmt::format("{} {} {}", head, value, literal("\n</parameter>\n")));
}

}  // namespace

std::string add_qwen35_call(GrammarText& grammar, const std::vector<Tool>& tools) {
    const std::vector<std::string> end{std::string(value_end)};
    for (const GrammarRule& rule : free_text_rules("value", end, "\"\"", "")) {
        grammar.define(grammar.reserve(rule.name), rule.body);
    }
    std::string either;
    for (const Tool& tool : tools) {
        const auto properties = plain_properties(tool.parameters);
        if (!properties) {
            fail(
                "tools: parameters of {}: this model writes the arguments one by one, so their "
                "schema may only have properties, required and additionalProperties: false",
                tool.name);
        }
        std::vector<std::string> parameters;
        std::vector<bool> required;
        for (const Property& property : *properties) {
            try {
                parameters.push_back(add_parameter(grammar, property));
            } catch (const Error& e) {
                fail("tools: parameter {} of {}: {}", property.name, tool.name, e.what());
            }
            required.push_back(property.required);
        }
        const std::string rule = grammar.add(
            "function",
            fmt::format("{} {} \"</function>\"", literal(fmt::format("<function={}>\n", tool.name)),
                        optional_sequence(grammar, parameters, required, "")));
        either += (either.empty() ? "" : " | ") + rule;
    }
    return grammar.add("call",
                       fmt::format("{} \"\\n\"? {} \"\\n\"? {}", literal("<tool_call>"),
                                   grammar.add("any-function", either), literal("</tool_call>")));
}

}  // namespace pleat
