// Typed access to a File's metadata.
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/error.h"
#include "gguf/file.h"

namespace pleat::gguf {
namespace {

template <typename T>
constexpr bool is_integer = std::is_integral_v<T> && !std::is_same_v<T, bool>;

/// Who asks, for messages.
struct Key {
    const std::string& path;
    std::string_view name;
};

[[noreturn]] void fail_type(const Key& key, const Value& value, std::string_view expected) {
    fail("{}: key {} has type {}, expected {}", key.path, key.name, describe_type(value), expected);
}

/// `place` is "" or " at index 3".
template <typename To, typename From>
To narrow(const Key& key, From value, const std::string& place) {
    if (!std::in_range<To>(value)) {
        fail("{}: key {} is {}{}, expected {} to {}", key.path, key.name, value, place,
             std::numeric_limits<To>::min(), std::numeric_limits<To>::max());
    }
    return static_cast<To>(value);
}

template <typename To>
std::optional<To> scalar(const Key& key, const Value& value) {
    return std::visit(
        [&](const auto& v) -> std::optional<To> {
            if constexpr (is_integer<std::decay_t<decltype(v)>>) return narrow<To>(key, v, "");
            return std::nullopt;
        },
        value);
}

/// No value when `value` is no array of integers.
template <typename To>
std::optional<std::vector<To>> integers(const Key& key, const Value& value) {
    const auto* array = std::get_if<Array>(&value);
    if (array == nullptr || array->type == ValueType::boolean) return std::nullopt;
    return std::visit(
        [&](const auto& items) -> std::optional<std::vector<To>> {
            if constexpr (is_integer<typename std::decay_t<decltype(items)>::value_type>) {
                std::vector<To> out;
                out.reserve(items.size());
                for (size_t i = 0; i < items.size(); ++i) {
                    // The place is put into words only for what is out of range.
                    out.push_back(std::in_range<To>(items[i])
                                      ? static_cast<To>(items[i])
                                      : narrow<To>(key, items[i], fmt::format(" at index {}", i)));
                }
                return out;
            }
            return std::nullopt;
        },
        array->items);
}

/// Some programs write flags as an array of integers. A lone integer is no flag, though: for a key
/// such as a sliding window's pattern it is a period.
std::optional<std::vector<bool>> booleans(const Key& key, const Value& value) {
    const auto* array = std::get_if<Array>(&value);
    if (array == nullptr) return std::nullopt;
    if (array->type == ValueType::boolean) {
        const auto& flags = std::get<std::vector<uint8_t>>(array->items);
        return std::vector<bool>(flags.begin(), flags.end());
    }
    const auto numbers = integers<int32_t>(key, value);
    if (!numbers) return std::nullopt;
    std::vector<bool> out;
    for (const int32_t number : *numbers) {
        if (number != 0 && number != 1) {
            fail("{}: key {} is {} at index {}, expected 0 or 1", key.path, key.name, number,
                 out.size());
        }
        out.push_back(number == 1);
    }
    return out;
}

void check_length(const Key& key, const Value& value, uint32_t n) {
    const auto* array = std::get_if<Array>(&value);
    if (array == nullptr || array->size() == n) return;
    fail("{}: key {} has {} entries, expected {}, one per layer", key.path, key.name, array->size(),
         n);
}

template <typename T>
T required(std::optional<T> value, const Key& key) {
    if (!value) fail("{}: key {} is missing", key.path, key.name);
    return *std::move(value);
}

}  // namespace

std::optional<uint32_t> File::u32(std::string_view key) const {
    const Value* value = find(key);
    if (value == nullptr) return std::nullopt;
    const auto number = scalar<uint32_t>({path(), key}, *value);
    if (!number) fail_type({path(), key}, *value, "an integer");
    return number;
}

std::optional<float> File::f32(std::string_view key) const {
    const Value* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (const auto* number = std::get_if<float>(value)) return *number;
    if (const auto* number = std::get_if<double>(value)) {
        if (std::isfinite(*number) && std::abs(*number) > std::numeric_limits<float>::max()) {
            fail("{}: key {} is {}, expected a number that fits into f32", path(), key, *number);
        }
        return static_cast<float>(*number);
    }
    fail_type({path(), key}, *value, "f32");
}

std::optional<bool> File::boolean(std::string_view key) const {
    const Value* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (const auto* flag = std::get_if<bool>(value)) return *flag;
    fail_type({path(), key}, *value, "bool");
}

std::optional<std::string> File::string(std::string_view key) const {
    const Value* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (const auto* text = std::get_if<std::string>(value)) return *text;
    fail_type({path(), key}, *value, "string");
}

uint32_t File::required_u32(std::string_view key) const {
    return required(u32(key), {path(), key});
}

float File::required_f32(std::string_view key) const { return required(f32(key), {path(), key}); }

std::string File::required_string(std::string_view key) const {
    return required(string(key), {path(), key});
}

std::optional<std::vector<uint32_t>> File::u32_per_layer(std::string_view key, uint32_t n) const {
    const Value* value = find(key);
    if (value == nullptr) return std::nullopt;
    const Key from{path(), key};
    if (const auto number = scalar<uint32_t>(from, *value)) return std::vector(n, *number);
    auto numbers = integers<uint32_t>(from, *value);
    if (!numbers) fail_type(from, *value, "an integer or an array of them");
    check_length(from, *value, n);
    return numbers;
}

std::optional<std::vector<bool>> File::boolean_per_layer(std::string_view key, uint32_t n) const {
    const Value* value = find(key);
    if (value == nullptr) return std::nullopt;
    const Key from{path(), key};
    if (const auto* flag = std::get_if<bool>(value)) return std::vector<bool>(n, *flag);
    const auto flags = booleans(from, *value);
    if (!flags) fail_type(from, *value, "bool or an array of bool");
    check_length(from, *value, n);
    return flags;
}

std::optional<std::vector<int32_t>> File::i32_array(std::string_view key) const {
    const Value* value = find(key);
    if (value == nullptr) return std::nullopt;
    auto numbers = integers<int32_t>({path(), key}, *value);
    if (!numbers) fail_type({path(), key}, *value, "an array of integers");
    return numbers;
}

}  // namespace pleat::gguf
