#include "chat/gemma4_grammar.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/error.h"
#include "chat/object_schema.h"
#include "schema/json_schema.h"
#include "text/free_text.h"

namespace pleat {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view quote = "<|\"|>";
constexpr int max_depth = 30;

std::string literal(std::string_view text) { return GrammarText::literal(text); }

std::string key_literal(const std::string& name) {
    const bool bare = !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '_' || c == '-';
    });
    return literal((bare ? name : Json(name).dump()) + ":");
}

std::string lower(std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
}

class Writer {
  public:
    explicit Writer(GrammarText& grammar) : grammar_(grammar) {
        const std::vector<std::string> end{std::string(quote)};
        for (const GrammarRule& rule : free_text_rules("text", end, "\"\"", "")) {
            grammar_.define(grammar_.reserve(rule.name), rule.body);
        }
    }

    std::string value(const Json& schema, int depth) {
        if (const auto texts = bare_texts(schema)) return text(*texts);
        if (depth < max_depth) {
            if (const auto properties = plain_properties(closed(schema))) {
                return object(*properties, depth);
            }
            if (is_plain_array(schema)) {
                const std::string item =
                    value(with_definitions(schema["items"], schema), depth + 1);
                return grammar_.add("list", fmt::format("\"[\" ({0} (\",\" {0})*)? \"]\"", item));
            }
        }
        return add_json_schema(grammar_, schema);
    }

    std::string object(std::vector<Property> properties, int depth) {
        std::ranges::stable_sort(properties, {}, [](const Property& p) { return lower(p.name); });
        std::vector<std::string> items;
        std::vector<bool> required;
        for (const Property& property : properties) {
            items.push_back(grammar_.add(
                "pair", key_literal(property.name) + " " + value(property.schema, depth + 1)));
            required.push_back(property.required);
        }
        return grammar_.add(
            "dictionary",
            "\"{\" " + optional_sequence(grammar_, items, required, "\",\"") + " \"}\"");
    }

  private:
    /// As in JSON's grammar: without additionalProperties there are no others, where any are named.
    static Json closed(Json schema) {
        if (schema.is_object() && schema.contains("properties") &&
            !schema.contains("additionalProperties")) {
            schema["additionalProperties"] = false;
        }
        return schema;
    }

    static bool is_plain_array(const Json& schema) {
        static constexpr std::array<std::string_view, 6> known{"type",  "items", "description",
                                                               "title", "$defs", "definitions"};
        return schema.is_object() && schema.value("type", Json()) == "array" &&
               schema.contains("items") && schema["items"].is_object() &&
               std::ranges::all_of(schema.items(), [](const auto& item) {
                   return std::ranges::find(known, item.key()) != known.end();
               });
    }

    std::string text(const std::vector<std::string>& texts) {
        if (texts.empty()) return grammar_.add("any-text", literal(quote) + " text-0");
        std::string either;
        for (const std::string& one : texts) {
            either += (either.empty() ? "" : " | ") +
                      literal(std::string(quote) + one + std::string(quote));
        }
        return grammar_.add("one-of", either);
    }

    GrammarText& grammar_;
};

}  // namespace

std::string add_gemma4_call(GrammarText& grammar, const std::vector<Tool>& tools) {
    Writer writer(grammar);
    std::string either;
    for (const Tool& tool : tools) {
        const auto properties = plain_properties(tool.parameters);
        try {
            const std::string arguments = properties ? writer.object(*properties, 0)
                                                     : add_json_schema(grammar, tool.parameters);
            const std::string rule =
                grammar.add("call-of", literal("call:" + tool.name) + " " + arguments);
            either += (either.empty() ? "" : " | ") + rule;
        } catch (const Error& e) {
            fail("tools: parameters of {}: {}", tool.name, e.what());
        }
    }
    return grammar.add("call", literal("<|tool_call>") + " " + grammar.add("any-call", either) +
                                   " " + literal("<tool_call|>"));
}

}  // namespace pleat
