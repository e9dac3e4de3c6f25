#include "schema/constraints.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"

namespace pleat {

using nlohmann::ordered_json;

SchemaPart SchemaPart::at(std::string_view key) const {
    std::string token(key);
    for (size_t i = 0; i < token.size(); ++i) {
        if (token[i] == '~') token.replace(i++, 1, "~0");
        if (token[i] == '/') token.replace(i++, 1, "~1");
    }
    return {&json->at(std::string(key)), pointer + '/' + token};
}

SchemaPart SchemaPart::at(size_t index) const {
    return {&json->at(index), fmt::format("{}/{}", pointer, index)};
}

namespace {

constexpr size_t longest_excerpt = 80;  // characters

}  // namespace

std::string excerpt(std::string_view text) {
    std::string start;
    size_t n = 0;
    for (const char32_t c : utf32(text.substr(0, 4 * longest_excerpt + 4))) {
        if (n++ == longest_excerpt) break;
        start += utf8(c);
    }
    return ordered_json(start).dump() + (start.size() < text.size() ? "..." : "");
}

std::string shown(const SchemaPart& part) {
    const std::string quoted = excerpt(part.pointer);
    // Control characters and quotes in it show as JSON's escapes.
    const size_t close = quoted.rfind('"');
    return quoted.substr(1, close - 1) + quoted.substr(close + 1);
}

uint8_t json_type::of(const ordered_json& value) {
    if (value.is_null()) return null;
    if (value.is_boolean()) return boolean;
    if (value.is_string()) return string;
    if (value.is_array()) return array;
    if (value.is_object()) return object;
    if (value.is_number_integer()) return integer;
    return decimal_of(value).fraction.empty() ? integer : fraction;
}

std::string canonical(const ordered_json& value) {
    if (value.is_number()) {
        const Decimal decimal = decimal_of(value);
        return fmt::format("{}{}.{}", decimal.negative ? "-" : "", decimal.whole, decimal.fraction);
    }
    if (!value.is_structured()) return value.dump();
    if (value.is_array()) {
        std::string result = "[";
        for (const ordered_json& item : value) result += canonical(item) + ',';
        return result + ']';
    }
    std::map<std::string, std::string> sorted;
    for (const auto& [key, item] : value.items()) sorted[key] = canonical(item);
    std::string result = "{";
    for (const auto& [key, item] : sorted) result += ordered_json(key).dump() + ':' + item + ',';
    return result + '}';
}

bool Constraints::requires_property(std::string_view name) const {
    return std::ranges::find(required, name) != required.end();
}

std::vector<std::string> Constraints::property_names() const {
    std::vector<std::string> result;
    std::set<std::string_view> known;
    for (const ObjectPart& part : objects) {
        if (part.properties == nullptr) continue;
        for (const auto& [name, schema] : part.properties->items()) {
            if (known.insert(name).second) result.push_back(name);
        }
    }
    return result;
}

std::vector<SchemaPart> Constraints::property(const std::string& name) const {
    std::vector<SchemaPart> result;
    for (const ObjectPart& part : objects) {
        bool named = false;
        if (part.properties != nullptr && part.properties->contains(name)) {
            named = true;
            result.push_back(part.schema.at("properties").at(name));
        }
        for (const ObjectPart::Patterned& patterned : part.patterned) {
            if (!matches(patterned.regex, utf32(name))) continue;
            named = true;
            result.push_back(part.schema.at("patternProperties").at(patterned.text));
        }
        if (!named && part.additional != nullptr) {
            result.push_back(part.schema.at("additionalProperties"));
        }
    }
    return result;
}

size_t Constraints::n_prefix() const {
    size_t result = 0;
    for (const ArrayPart& part : arrays) {
        if (part.prefix) result = std::max(result, part.prefix->json->size());
    }
    return result;
}

std::vector<SchemaPart> Constraints::item(size_t index) const {
    std::vector<SchemaPart> result;
    for (const ArrayPart& part : arrays) {
        if (part.prefix && index < part.prefix->json->size()) {
            result.push_back(part.prefix->at(index));
        } else if (part.items) {
            result.push_back(*part.items);
        }
    }
    return result;
}

}  // namespace pleat
