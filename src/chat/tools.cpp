#include "chat/tools.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "base/error.h"

namespace pleat {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t max_name = 128;

/// What OpenAI allows, and the dots and slashes that other servers let pass. Anything else could
/// be mistaken for a part of a form.
bool is_name(std::string_view text) {
    return !text.empty() && text.size() <= max_name && std::ranges::all_of(text, [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               c == '_' || c == '-' || c == '.' || c == '/';
    });
}

/// OpenAI lets a function without arguments have no schema, and a schema no more than its type.
Json object_schema(Json schema) {
    if (schema.is_null()) schema = Json::object();
    if (!schema.contains("type")) schema["type"] = "object";
    if (!schema.contains("properties")) schema["properties"] = Json::object();
    return schema;
}

Json parameters_of(const Json& function, const std::string& where) {
    const Json given = function.value("parameters", Json());
    if (!given.is_null() && !given.is_object()) fail("{}.parameters: must be a JSON Schema", where);
    Json schema = object_schema(given);
    if (schema["type"] != "object") fail("{}.parameters: must be of type object", where);
    // What a tool does not name, it does not know.
    const bool combined = schema.contains("anyOf") || schema.contains("oneOf") ||
                          schema.contains("allOf") || schema.contains("$ref") ||
                          schema.contains("patternProperties");
    if (!schema.contains("additionalProperties") && !combined) {
        schema["additionalProperties"] = false;
    }
    return schema;
}

}  // namespace

Json template_tools(const Json& tools) {
    Json result = tools;
    for (Json& tool : result) {
        Json& parameters = tool["function"]["parameters"];
        parameters = object_schema(std::move(parameters));
    }
    return result;
}

std::vector<Tool> read_tools(const Json& tools) {
    if (!tools.is_array()) fail("tools: must be a list");
    std::vector<Tool> result;
    std::set<std::string> names;
    for (size_t i = 0; i < tools.size(); ++i) {
        const std::string where = fmt::format("tools[{}]", i);
        const Json& tool = tools[i];
        if (!tool.is_object() || tool.value("type", Json("function")) != "function" ||
            !tool.contains("function") || !tool["function"].is_object()) {
            fail("{}: must be {{\"type\": \"function\", \"function\": {{...}}}}", where);
        }
        const Json& function = tool["function"];
        const Json name = function.value("name", Json());
        if (!name.is_string() || !is_name(name.get<std::string>())) {
            fail("{}.function.name: must be up to {} letters, digits, _ - . or /", where, max_name);
        }
        if (!names.insert(name.get<std::string>()).second) {
            fail("{}.function.name: {} comes twice", where, name.dump());
        }
        const Json description = function.value("description", Json());
        result.push_back(
            {.name = name.get<std::string>(),
             .description = description.is_string() ? description.get<std::string>() : "",
             .parameters = parameters_of(function, where + ".function")});
    }
    return result;
}

std::optional<std::vector<std::string>> bare_texts(const Json& schema) {
    static constexpr std::array<std::string_view, 11> known{
        "type",    "enum",       "title",    "description", "default", "examples",
        "example", "deprecated", "readOnly", "writeOnly",   "$comment"};
    if (!schema.is_object() || schema.value("type", Json()) != "string") return {};
    for (const auto& [key, value] : schema.items()) {
        if (std::ranges::find(known, key) == known.end() && !key.starts_with("$def") &&
            key != "definitions") {
            return {};
        }
    }
    std::vector<std::string> texts;
    if (!schema.contains("enum")) return texts;
    for (const Json& value : schema["enum"]) {
        if (!value.is_string()) return {};
        texts.push_back(value.get<std::string>());
        // Could be taken for an end of the text.
        const bool plain = std::ranges::none_of(
            texts.back(), [](char c) { return c == '<' || static_cast<unsigned char>(c) < 0x20; });
        if (!plain || texts.back().empty()) return {};
    }
    if (texts.empty()) return {};
    return texts;
}

std::vector<std::pair<std::string, std::string>> text_parameters(const std::vector<Tool>& tools) {
    std::vector<std::pair<std::string, std::string>> result;
    for (const Tool& tool : tools) {
        const Json properties = tool.parameters.value("properties", Json::object());
        if (!properties.is_object()) continue;
        for (const auto& [name, schema] : properties.items()) {
            if (bare_texts(schema)) result.emplace_back(tool.name, name);
        }
    }
    return result;
}

}  // namespace pleat
