#include "support/schema_check.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <regex>
#include <stdexcept>
#include <string>

namespace pleat::test {
namespace {

using nlohmann::json;

std::wstring characters(const std::string& text) {
    std::wstring result;
    for (size_t i = 0; i < text.size();) {
        const auto lead = static_cast<unsigned char>(text[i]);
        const size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
        uint32_t c = length == 1 ? lead : lead & (0x7FU >> length);
        for (size_t k = 1; k < length; ++k) {
            c = c << 6U | (static_cast<unsigned char>(text[i + k]) & 0x3FU);
        }
        result += static_cast<wchar_t>(c);
        i += length;
    }
    return result;
}

bool finds(const std::string& pattern, const std::string& text) {
    return std::regex_search(characters(text), std::wregex(characters(pattern)));
}

bool has_type(const std::string& type, const json& value) {
    if (type == "integer") {
        return value.is_number() && std::floor(value.get<double>()) == value.get<double>();
    }
    return type == value.type_name();  // number, string, array, object, boolean, null
}

bool keyword_holds(const json& schema, const std::string& keyword, const json& wanted,
                   const json& value, const json& root) {
    const auto valid = [&](const json& inner, const json& one) {
        return is_valid(inner, one, root);
    };
    if (keyword == "$defs") return true;
    if (keyword == "$ref") {
        return valid(root.at(json::json_pointer(wanted.get<std::string>().substr(1))), value);
    }
    if (keyword == "type") {
        if (wanted.is_string()) return has_type(wanted, value);
        return std::ranges::any_of(wanted, [&](const json& one) { return has_type(one, value); });
    }
    if (keyword == "const") return value == wanted;
    if (keyword == "enum") return std::ranges::find(wanted, value) != wanted.end();
    if (keyword == "anyOf" || keyword == "oneOf" || keyword == "allOf") {
        const auto n =
            std::ranges::count_if(wanted, [&](const json& one) { return valid(one, value); });
        if (keyword == "allOf") return static_cast<size_t>(n) == wanted.size();
        return keyword == "anyOf" ? n > 0 : n == 1;
    }
    if (value.is_number()) {
        if (keyword == "minimum") return value >= wanted;
        if (keyword == "maximum") return value <= wanted;
        if (keyword == "exclusiveMinimum") return value > wanted;
        if (keyword == "exclusiveMaximum") return value < wanted;
    }
    if (value.is_string()) {
        const auto& text = value.get_ref<const std::string&>();
        if (keyword == "minLength") return characters(text).size() >= wanted.get<size_t>();
        if (keyword == "maxLength") return characters(text).size() <= wanted.get<size_t>();
        if (keyword == "pattern") return finds(wanted, text);
    }
    if (value.is_array()) {
        const size_t n_prefix = schema.contains("prefixItems") ? schema["prefixItems"].size() : 0;
        if (keyword == "minItems") return value.size() >= wanted.get<size_t>();
        if (keyword == "maxItems") return value.size() <= wanted.get<size_t>();
        for (size_t i = 0; i < value.size(); ++i) {
            if (keyword == "prefixItems" && i < n_prefix && !valid(wanted[i], value[i]))
                return false;
            if (keyword == "items" && i >= n_prefix && !valid(wanted, value[i])) return false;
        }
    }
    if (value.is_object()) {
        if (keyword == "required") {
            return std::ranges::all_of(wanted, [&](const json& name) {
                return value.contains(name.get_ref<const std::string&>());
            });
        }
        for (const auto& [name, one] : value.items()) {
            const bool listed =
                schema.contains("properties") && schema["properties"].contains(name);
            if (keyword == "properties" && listed && !valid(wanted[name], one)) return false;
            if (keyword == "additionalProperties" && !listed && !valid(wanted, one)) return false;
        }
    }
    static const std::vector<std::string> known = {"minimum",
                                                   "maximum",
                                                   "exclusiveMinimum",
                                                   "exclusiveMaximum",
                                                   "minLength",
                                                   "maxLength",
                                                   "pattern",
                                                   "minItems",
                                                   "maxItems",
                                                   "prefixItems",
                                                   "items",
                                                   "required",
                                                   "properties",
                                                   "additionalProperties"};
    if (std::ranges::find(known, keyword) == known.end()) {
        throw std::runtime_error("schema check: keyword " + keyword);
    }
    return true;
}

}  // namespace

bool is_valid(const json& schema, const json& value, const json& root) {
    if (schema.is_boolean()) return schema.get<bool>();
    for (const auto& [keyword, wanted] : schema.items()) {
        if (!keyword_holds(schema, keyword, wanted, value, root)) return false;
    }
    return true;
}

}  // namespace pleat::test
