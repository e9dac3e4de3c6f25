#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "schema/json_schema.h"
#include "schema/number_range.h"
#include "schema/pattern.h"

namespace pleat {

/// A sub-schema and where it stands; borrowed from the schema that is translated.
struct SchemaPart {
    const nlohmann::ordered_json* json = nullptr;
    std::string pointer;  ///< "#/properties/a"

    SchemaPart at(std::string_view key) const;  ///< the key must exist
    SchemaPart at(size_t index) const;
};

/// Fit for a message: one line, not too long.
std::string shown(const SchemaPart& part);

/// Throws Error: one line that begins with the place.
template <typename... Args>
[[noreturn]] void fail_at(const SchemaPart& part, fmt::format_string<Args...> format,
                          Args&&... args) {
    fail("schema, {}: {}", shown(part), fmt::format(format, std::forward<Args>(args)...));
}

/// JSON's types as bits. "number" is both integer and fraction.
namespace json_type {
constexpr uint8_t null = 1;
constexpr uint8_t boolean = 2;
constexpr uint8_t integer = 4;
constexpr uint8_t fraction = 8;
constexpr uint8_t number = integer | fraction;
constexpr uint8_t string = 16;
constexpr uint8_t array = 32;
constexpr uint8_t object = 64;
constexpr uint8_t all = 127;
uint8_t of(const nlohmann::ordered_json& value);
}  // namespace json_type

/// What one schema object says about objects and arrays; of several that hold together each keeps
/// its own, because "additional" means something else in each.
struct ObjectPart {
    SchemaPart schema;
    const nlohmann::ordered_json* properties = nullptr;
    const nlohmann::ordered_json* additional = nullptr;
    struct Patterned {
        std::string text;
        Regex regex;
    };
    std::vector<Patterned> patterned = {};
};

struct ArrayPart {
    SchemaPart schema;
    std::optional<SchemaPart> prefix = {};  ///< an array of schemas
    std::optional<SchemaPart> items = {};   ///< of what follows it
};

/// Several schema objects, without choices and references, that hold at the same time.
struct Constraints {
    SchemaPart place = {};  ///< the first of them, for messages
    /// Those that say something about values: equal lists mean the same. In reading order.
    std::vector<const nlohmann::ordered_json*> sources = {};
    uint8_t types = json_type::all;
    std::optional<std::vector<const nlohmann::ordered_json*>> values = {};  ///< of enum and const
    NumberRange numbers = {};
    LengthRange length = {};  ///< of strings
    struct Pattern {
        SchemaPart schema;
        Regex regex;
    };
    std::vector<Pattern> patterns = {};
    std::vector<ObjectPart> objects = {};
    std::vector<std::string> required = {};  ///< each once
    std::vector<SchemaPart> names = {};      ///< propertyNames
    LengthRange n_properties = {};
    std::vector<ArrayPart> arrays = {};
    LengthRange n_items = {};

    bool requires_property(std::string_view name) const;
    /// All schemas of a property, by the rules of properties, patternProperties and
    /// additionalProperties.
    std::vector<SchemaPart> property(const std::string& name) const;
    /// Names in `properties`, in reading order, each once.
    std::vector<std::string> property_names() const;
    std::vector<SchemaPart> item(size_t index) const;
    size_t n_prefix() const;
};

/// Joins them. Throws Error for a keyword that is not supported and for a bad value of one.
/// Without any `type` the types are those that the keywords speak of.
Constraints join(const std::vector<SchemaPart>& schemas, const SchemaLimits& limits);

/// The beginning of a text of the schema as JSON, for messages.
std::string excerpt(std::string_view text);

/// A text that is the same for values that JSON Schema takes for equal: keys in any order, 1 and
/// 1.0 alike.
std::string canonical(const nlohmann::ordered_json& value);

}  // namespace pleat
