#include "chat/object_schema.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.h"

namespace pleat {

using Json = nlohmann::ordered_json;

Json with_definitions(Json part, const Json& schema) {
    for (const char* definitions : {"$defs", "definitions"}) {
        if (part.is_object() && !part.contains(definitions) && schema.contains(definitions)) {
            part[definitions] = schema[definitions];
        }
    }
    return part;
}

std::optional<std::vector<Property>> plain_properties(const Json& schema) {
    static constexpr std::array<std::string_view, 13> known{
        "type",    "properties",  "required", "additionalProperties", "title",
        "$schema", "description", "$defs",    "definitions",          "default",
        "$id",     "$comment",    "examples"};
    if (!schema.is_object() || schema.value("type", Json()) != "object") return {};
    for (const auto& [key, value] : schema.items()) {
        if (std::ranges::find(known, key) == known.end()) return {};
    }
    if (schema.value("additionalProperties", Json()) != false) return {};
    const Json properties = schema.value("properties", Json::object());
    const Json required = schema.value("required", Json::array());
    if (!properties.is_object() || !required.is_array()) return {};
    std::vector<Property> result;
    for (const auto& [name, property] : properties.items()) {
        const bool needed = std::ranges::find(required, Json(name)) != required.end();
        result.push_back({name, with_definitions(property, schema), needed});
    }
    const bool all_named = std::ranges::all_of(required, [&](const Json& name) {
        return name.is_string() && properties.contains(name.get<std::string>());
    });
    if (!all_named) return {};
    return result;
}

std::string optional_sequence(GrammarText& grammar, const std::vector<std::string>& items,
                              const std::vector<bool>& required, const std::string& separator) {
    // From the end: what may follow the first, and what may follow others.
    std::string first = "\"\"";
    std::string later = "\"\"";
    for (size_t i = items.size(); i > 0; --i) {
        const std::string& item = items[i - 1];
        const std::string skip_first = required[i - 1] ? "" : " | " + first;
        const std::string skip_later = required[i - 1] ? "" : " | " + later;
        const std::string next = later;
        first = grammar.add("some", fmt::format("{} {}{}", item, next, skip_first));
        later = grammar.add("more", fmt::format("{} {} {}{}", separator, item, next, skip_later));
    }
    return first;
}

}  // namespace pleat
