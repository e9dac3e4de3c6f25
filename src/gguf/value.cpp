#include "gguf/value.h"

#include <cstddef>

namespace pleat::gguf {

// The alternatives stand in the order of the format's numbers, so an index is a ValueType.
static_assert(std::is_same_v<std::variant_alternative_t<size_t(ValueType::boolean), Value>, bool>);
static_assert(std::is_same_v<std::variant_alternative_t<size_t(ValueType::array), Value>, Array>);
static_assert(std::is_same_v<std::variant_alternative_t<size_t(ValueType::f64), Value>, double>);

std::string_view type_name(ValueType type) {
    switch (type) {
        case ValueType::u8:
            return "u8";
        case ValueType::i8:
            return "i8";
        case ValueType::u16:
            return "u16";
        case ValueType::i16:
            return "i16";
        case ValueType::u32:
            return "u32";
        case ValueType::i32:
            return "i32";
        case ValueType::f32:
            return "f32";
        case ValueType::boolean:
            return "bool";
        case ValueType::string:
            return "string";
        case ValueType::array:
            return "array";
        case ValueType::u64:
            return "u64";
        case ValueType::i64:
            return "i64";
        case ValueType::f64:
            return "f64";
    }
    return "unknown";
}

uint64_t Array::size() const {
    return std::visit([](const auto& vector) -> uint64_t { return vector.size(); }, items);
}

ValueType type_of(const Value& value) { return static_cast<ValueType>(value.index()); }

std::string describe_type(const Value& value) {
    if (const auto* array = std::get_if<Array>(&value)) {
        return "array of " + std::to_string(array->size()) + " " +
               std::string(type_name(array->type));
    }
    return std::string(type_name(type_of(value)));
}

}  // namespace pleat::gguf
