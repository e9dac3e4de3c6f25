#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "schema/constraints.h"
#include "schema/formats.h"

namespace pleat {
namespace {

using nlohmann::ordered_json;

/// Joins one schema object after the other.
struct Reader {
    const SchemaLimits& limits;
    Constraints result = {};
    bool typed = false;
    uint8_t spoken_of = 0;  ///< types that keywords are about
};

/// `keyword` is the keyword's value and place, `schema` what it stands in.
using Read = void (*)(Reader& reader, const SchemaPart& schema, const SchemaPart& keyword);

/// Read with others of its kind.
void grouped(Reader& /*reader*/, const SchemaPart& /*schema*/, const SchemaPart& /*keyword*/) {}
/// Says nothing about values.
void nothing(Reader& /*reader*/, const SchemaPart& /*schema*/, const SchemaPart& /*keyword*/) {}

void refuse(Reader& /*reader*/, const SchemaPart& /*schema*/, const SchemaPart& keyword) {
    const std::string name = keyword.pointer.substr(keyword.pointer.rfind('/') + 1);
    fail_at(keyword, "the keyword {} is not supported", excerpt(name));
}

void read_type(Reader& reader, const SchemaPart& schema, const SchemaPart& keyword) {
    static const std::map<std::string, uint8_t, std::less<>> names = {
        {"null", json_type::null},       {"boolean", json_type::boolean},
        {"integer", json_type::integer}, {"number", json_type::number},
        {"string", json_type::string},   {"array", json_type::array},
        {"object", json_type::object}};
    const auto bit = [&](const ordered_json& value) {
        const auto it =
            value.is_string() ? names.find(value.get_ref<const std::string&>()) : names.end();
        if (it == names.end()) {
            fail_at(keyword,
                    "expected null, boolean, integer, number, string, array or object, or an array "
                    "of them");
        }
        return it->second;
    };
    uint8_t types = 0;
    if (keyword.json->is_array()) {
        for (const ordered_json& one : *keyword.json) types |= bit(one);
    } else {
        types = bit(*keyword.json);
    }
    const auto nullable = schema.json->find("nullable");
    if (nullable != schema.json->end() && *nullable == true) types |= json_type::null;
    reader.result.types &= types;
    reader.typed = true;
}

void read_nullable(Reader& /*reader*/, const SchemaPart& schema, const SchemaPart& keyword) {
    if (!keyword.json->is_boolean()) fail_at(keyword, "expected true or false");
    if (*keyword.json == true && !schema.json->contains("type")) {
        fail_at(keyword, R"(needs a type beside it; write anyOf with {{"type": "null"}})");
    }
}

void restrict_values(Reader& reader, std::vector<const ordered_json*> values) {
    auto& known = reader.result.values;
    if (known) {
        std::set<std::string> kept;
        for (const ordered_json* value : *known) kept.insert(canonical(*value));
        std::erase_if(values,
                      [&](const ordered_json* value) { return !kept.contains(canonical(*value)); });
    }
    known = std::move(values);
}

void read_enum(Reader& reader, const SchemaPart& /*schema*/, const SchemaPart& keyword) {
    if (!keyword.json->is_array() || keyword.json->empty())
        fail_at(keyword, "expected a non-empty array");
    std::vector<const ordered_json*> values;
    for (const ordered_json& one : *keyword.json) values.push_back(&one);
    restrict_values(reader, std::move(values));
}

void read_const(Reader& reader, const SchemaPart& /*schema*/, const SchemaPart& keyword) {
    restrict_values(reader, {keyword.json});
}

constexpr size_t longest_bound = 30;  // digits on either side of the point

Decimal decimal_at(const SchemaPart& keyword) {
    try {
        Decimal value = decimal_of(*keyword.json);
        if (std::max(value.whole.size(), value.fraction.size()) > longest_bound) {
            fail("has more than {} digits", longest_bound);
        }
        return value;
    } catch (const Error& e) {
        fail_at(keyword, "{}", e.what());
    }
}

template <bool is_least, bool exclusive>
void read_bound(Reader& reader, const SchemaPart& /*schema*/, const SchemaPart& keyword) {
    reader.spoken_of |= json_type::number;
    const NumberBound bound{decimal_at(keyword), exclusive};
    if (is_least) {
        reader.result.numbers.at_least(bound);
    } else {
        reader.result.numbers.at_most(bound);
    }
}

void read_multiple(Reader& reader, const SchemaPart& schema, const SchemaPart& keyword) {
    if (decimal_at(keyword) != Decimal{false, "1", {}}) refuse(reader, schema, keyword);
    reader.spoken_of |= json_type::integer;
    reader.result.types &= static_cast<uint8_t>(~json_type::fraction);
}

/// A whole number that is not negative, 3.0 as well as 3; a larger one counts as limit + 1.
uint64_t count(const SchemaPart& keyword, uint64_t limit) {
    const ordered_json& value = *keyword.json;
    const bool whole =
        value.is_number() &&
        (value.is_number_integer() || std::floor(value.get<double>()) == value.get<double>());
    if (!whole || value < 0) fail_at(keyword, "expected a whole number, 0 or more");
    if (value > limit) return limit + 1;
    return value.is_number_integer() ? value.get<uint64_t>()
                                     : static_cast<uint64_t>(value.get<double>());
}

template <LengthRange Constraints::*range, uint8_t type>
void read_least(Reader& reader, const SchemaPart& /*schema*/, const SchemaPart& keyword) {
    reader.spoken_of |= type;
    const uint64_t value = count(keyword, reader.limits.repetitions);
    if (value > reader.limits.repetitions) {
        fail_at(keyword, "more than {} is not supported", reader.limits.repetitions);
    }
    LengthRange& target = reader.result.*range;
    target.least = std::max(target.least, value);
}

/// Beyond the limit there are values that the grammar will not write; none that it should not.
template <LengthRange Constraints::*range, uint8_t type>
void read_most(Reader& reader, const SchemaPart& /*schema*/, const SchemaPart& keyword) {
    reader.spoken_of |= type;
    const uint64_t value =
        std::min(count(keyword, reader.limits.repetitions), reader.limits.repetitions);
    LengthRange& target = reader.result.*range;
    target.most = std::min(value, target.most.value_or(value));
}

const std::string& text_of(const SchemaPart& keyword) {
    if (!keyword.json->is_string()) fail_at(keyword, "expected a string");
    return keyword.json->get_ref<const std::string&>();
}

Regex regex_of(const SchemaPart& place, std::string_view pattern) {
    try {
        return parse_pattern(pattern);
    } catch (const Error& e) {
        fail_at(place, "pattern {}: {}", excerpt(pattern), e.what());
    }
}

void read_pattern(Reader& reader, const SchemaPart& /*schema*/, const SchemaPart& keyword) {
    reader.spoken_of |= json_type::string;
    reader.result.patterns.push_back({keyword, regex_of(keyword, text_of(keyword))});
}

void read_format(Reader& reader, const SchemaPart& /*schema*/, const SchemaPart& keyword) {
    struct Whole {
        Decimal least;
        Decimal most;
    };
    static const std::map<std::string, Whole, std::less<>> integers = {
        {"int8", {{true, "128"}, {false, "127"}}},
        {"int16", {{true, "32768"}, {false, "32767"}}},
        {"int32", {{true, "2147483648"}, {false, "2147483647"}}},
        {"int64", {{true, "9223372036854775808"}, {false, "9223372036854775807"}}},
        {"uint8", {{false, "0"}, {false, "255"}}},
        {"uint16", {{false, "0"}, {false, "65535"}}},
        {"uint32", {{false, "0"}, {false, "4294967295"}}},
        {"uint64", {{false, "0"}, {false, "18446744073709551615"}}}};
    const std::string& name = text_of(keyword);
    // Said of numbers, and of text fields in forms; they exclude no value.
    if (name == "float" || name == "double" || name == "password") return;
    if (const auto it = integers.find(name); it != integers.end()) {
        reader.spoken_of |= json_type::integer;
        reader.result.types &= static_cast<uint8_t>(~json_type::fraction);
        reader.result.numbers.at_least({it->second.least, false});
        reader.result.numbers.at_most({it->second.most, false});
        return;
    }
    const auto pattern = format_pattern(name);
    if (!pattern) {
        fail_at(keyword, "the format {} is not supported; those of strings are {}", excerpt(name),
                format_names());
    }
    reader.spoken_of |= json_type::string;
    reader.result.patterns.push_back({keyword, parse_pattern(*pattern)});
}

void read_required(Reader& reader, const SchemaPart& /*schema*/, const SchemaPart& keyword) {
    reader.spoken_of |= json_type::object;
    if (!keyword.json->is_array()) fail_at(keyword, "expected an array of strings");
    std::set<std::string_view> known(reader.result.required.begin(), reader.result.required.end());
    std::vector<std::string> added;
    for (const ordered_json& name : *keyword.json) {
        if (!name.is_string()) fail_at(keyword, "expected an array of strings");
        const auto& text = name.get_ref<const std::string&>();
        if (known.insert(text).second) added.push_back(text);
    }
    auto& required = reader.result.required;
    required.insert(required.end(), added.begin(), added.end());
}

void require_object(const SchemaPart& keyword) {
    if (!keyword.json->is_object()) fail_at(keyword, "expected an object");
}

void read_names(Reader& reader, const SchemaPart& /*schema*/, const SchemaPart& keyword) {
    reader.spoken_of |= json_type::object;
    reader.result.names.push_back(keyword);
}

/// All keywords of an object together, because they depend on each other.
void read_object(Reader& reader, const SchemaPart& schema) {
    ObjectPart part{.schema = schema};
    if (schema.json->contains("properties")) {
        require_object(schema.at("properties"));
        part.properties = &schema.json->at("properties");
    }
    if (schema.json->contains("additionalProperties")) {
        part.additional = &schema.json->at("additionalProperties");
    }
    if (schema.json->contains("patternProperties")) {
        const SchemaPart patterns = schema.at("patternProperties");
        require_object(patterns);
        for (const auto& [text, value] : patterns.json->items()) {
            part.patterned.push_back({text, regex_of(patterns, text)});
        }
    }
    if (part.properties == nullptr && part.additional == nullptr && part.patterned.empty()) return;
    reader.spoken_of |= json_type::object;
    reader.result.objects.push_back(std::move(part));
}

void read_array(Reader& reader, const SchemaPart& schema) {
    ArrayPart part{.schema = schema};
    const bool draft7 = schema.json->contains("items") && schema.json->at("items").is_array();
    if (schema.json->contains("prefixItems")) {
        part.prefix = schema.at("prefixItems");
        if (!part.prefix->json->is_array()) fail_at(*part.prefix, "expected an array of schemas");
        if (draft7) fail_at(schema.at("items"), "expected a schema beside prefixItems");
    }
    if (draft7) {
        part.prefix = schema.at("items");
        if (schema.json->contains("additionalItems")) part.items = schema.at("additionalItems");
    } else if (schema.json->contains("items")) {
        part.items = schema.at("items");
    }
    if (!part.prefix && !part.items) return;
    reader.spoken_of |= json_type::array;
    reader.result.arrays.push_back(std::move(part));
}

void read_unique(Reader& reader, const SchemaPart& schema, const SchemaPart& keyword) {
    if (!keyword.json->is_boolean()) fail_at(keyword, "expected true or false");
    const auto most = schema.json->find("maxItems");
    const bool one_at_most = most != schema.json->end() && most->is_number() && *most <= 1;
    if (*keyword.json == true && !one_at_most) refuse(reader, schema, keyword);
}

void read_id(Reader& reader, const SchemaPart& schema, const SchemaPart& keyword) {
    // References inside of another one would count from there.
    if (schema.pointer != "#") refuse(reader, schema, keyword);
}

const std::map<std::string_view, Read>& keywords() {
    namespace type = json_type;
    static const std::map<std::string_view, Read> table = {
        {"type", read_type},
        {"nullable", read_nullable},
        {"enum", read_enum},
        {"const", read_const},
        {"minimum", read_bound<true, false>},
        {"maximum", read_bound<false, false>},
        {"exclusiveMinimum", read_bound<true, true>},
        {"exclusiveMaximum", read_bound<false, true>},
        {"multipleOf", read_multiple},
        {"minLength", read_least<&Constraints::length, type::string>},
        {"maxLength", read_most<&Constraints::length, type::string>},
        {"pattern", read_pattern},
        {"format", read_format},
        {"required", read_required},
        {"propertyNames", read_names},
        {"minProperties", read_least<&Constraints::n_properties, type::object>},
        {"maxProperties", read_most<&Constraints::n_properties, type::object>},
        {"minItems", read_least<&Constraints::n_items, type::array>},
        {"maxItems", read_most<&Constraints::n_items, type::array>},
        {"uniqueItems", read_unique},
        {"properties", grouped},
        {"additionalProperties", grouped},
        {"patternProperties", grouped},
        {"items", grouped},
        {"prefixItems", grouped},
        {"additionalItems", grouped},
        // Unfolded before.
        {"$ref", nothing},
        {"allOf", nothing},
        {"anyOf", nothing},
        {"oneOf", nothing},
        {"discriminator", nothing},
        {"$defs", nothing},
        {"definitions", nothing},
        // Annotations exclude no value.
        {"$id", read_id},
        {"id", read_id},
        {"$schema", nothing},
        {"$comment", nothing},
        {"$anchor", nothing},
        {"title", nothing},
        {"description", nothing},
        {"default", nothing},
        {"example", nothing},
        {"examples", nothing},
        {"deprecated", nothing},
        {"readOnly", nothing},
        {"writeOnly", nothing},
        {"externalDocs", nothing},
        {"xml", nothing},
        {"contentEncoding", nothing},
        {"contentMediaType", nothing},
        {"contentSchema", nothing},
    };
    return table;
}

void read(Reader& reader, const SchemaPart& schema) {
    bool says = false;
    for (const auto& [name, value] : schema.json->items()) {
        const auto known = keywords().find(name);
        if (known != keywords().end()) {
            known->second(reader, schema, schema.at(name));
            says = says || known->second != nothing;
        } else if (!name.starts_with("x-")) {
            refuse(reader, schema, schema.at(name));
        }
    }
    read_object(reader, schema);
    read_array(reader, schema);
    if (says) reader.result.sources.push_back(schema.json);
}

}  // namespace

Constraints join(const std::vector<SchemaPart>& schemas, const SchemaLimits& limits) {
    Reader reader{.limits = limits};
    for (const SchemaPart& schema : schemas) read(reader, schema);
    Constraints& result = reader.result;
    result.place = schemas.empty() ? SchemaPart{nullptr, "#"} : schemas.front();
    if (!reader.typed && !result.values && reader.spoken_of != 0) result.types &= reader.spoken_of;
    return std::move(reader.result);
}

}  // namespace pleat
