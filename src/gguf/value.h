#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace pleat::gguf {

/// The value types of the format, with their numbers in the file
/// (ggml's docs/gguf.md, "gguf_metadata_value_type").
enum class ValueType : uint32_t {
    u8 = 0,
    i8 = 1,
    u16 = 2,
    i16 = 3,
    u32 = 4,
    i32 = 5,
    f32 = 6,
    boolean = 7,
    string = 8,
    array = 9,
    u64 = 10,
    i64 = 11,
    f64 = 12,
};

std::string_view type_name(ValueType type);

/// An array of one element type. Arrays of arrays are refused by the reader: nothing uses them.
struct Array {
    ValueType type = ValueType::u8;
    /// Element type: the vector's; bool is stored as uint8_t 0 or 1 under type `boolean`.
    std::variant<std::vector<uint8_t>, std::vector<int8_t>, std::vector<uint16_t>,
                 std::vector<int16_t>, std::vector<uint32_t>, std::vector<int32_t>,
                 std::vector<float>, std::vector<std::string>, std::vector<uint64_t>,
                 std::vector<int64_t>, std::vector<double>>
        items;
    uint64_t size() const;
    bool operator==(const Array&) const = default;
};

/// One metadata value with its type as stored.
using Value = std::variant<uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, float, bool,
                           std::string, Array, uint64_t, int64_t, double>;

ValueType type_of(const Value& value);

/// For messages: "u32", "array of 16 bool".
std::string describe_type(const Value& value);

struct KeyValue {
    std::string key;
    Value value;
    bool operator==(const KeyValue&) const = default;
};

}  // namespace pleat::gguf
