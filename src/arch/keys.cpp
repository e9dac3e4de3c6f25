#include "arch/keys.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/error.h"

namespace pleat {

void bad_key(const gguf::File& file, const std::string& key, const std::string& found,
             const std::string& expected) {
    fail("{}: key {} is {}, expected {}", file.path(), key, found, expected);
}

uint32_t Keys::in_range(std::string_view key, uint32_t value, uint32_t low, uint32_t high) const {
    if (value < low || value > high) {
        bad_key(file_, full(key), fmt::format("{}", value), fmt::format("{} to {}", low, high));
    }
    return value;
}

uint32_t Keys::required(std::string_view key, uint32_t low, uint32_t high) const {
    return in_range(key, file_.required_u32(full(key)), low, high);
}

uint32_t Keys::optional(std::string_view key, uint32_t fallback, uint32_t low,
                        uint32_t high) const {
    const auto value = file_.u32(full(key));
    return value ? in_range(key, *value, low, high) : fallback;
}

float Keys::positive(std::string_view key, float fallback) const {
    const auto value = file_.f32(full(key));
    if (!value) return fallback;
    if (!std::isfinite(*value) || *value <= 0.0F) {
        bad_key(file_, full(key), fmt::format("{}", *value), "a finite number above 0");
    }
    return *value;
}

float Keys::finite(std::string_view key, float fallback) const {
    const auto value = file_.f32(full(key));
    if (value && !std::isfinite(*value)) {
        bad_key(file_, full(key), fmt::format("{}", *value), "a finite number");
    }
    return value.value_or(fallback);
}

bool Keys::boolean(std::string_view key, bool fallback) const {
    return file_.boolean(full(key)).value_or(fallback);
}

std::vector<uint32_t> Keys::per_layer(std::string_view key, uint32_t n_block, uint32_t low,
                                      std::vector<uint32_t> fallback) const {
    auto values = file_.u32_per_layer(full(key), n_block);
    if (!values) return fallback;
    for (const uint32_t value : *values) in_range(key, value, low, max_dimension);
    return std::move(*values);
}

void Keys::missing(std::string_view key) const {
    fail("{}: key {} is missing", file_.path(), full(key));
}

}  // namespace pleat
