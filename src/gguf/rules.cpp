#include "gguf/rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <variant>

#include "base/checked.h"

namespace pleat::gguf {
namespace {

constexpr uint64_t max_i64 = std::numeric_limits<int64_t>::max();

bool is_control(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
}

std::optional<std::string> control_fault(std::string_view what, std::string_view text) {
    const auto* found = std::find_if(text.begin(), text.end(), is_control);
    if (found == text.end()) return std::nullopt;
    return fmt::format("has byte 0x{:02x} in its {}, expected no control characters",
                       static_cast<unsigned char>(*found), what);
}

}  // namespace

std::string escaped(std::string_view text) {
    constexpr size_t longest = 96;
    std::string out;
    for (const char c : text.substr(0, longest)) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '\\' || c == '"') {
            out += '\\';
            out += c;
        } else if (byte < 0x20 || byte >= 0x7f) {
            out += fmt::format("\\x{:02x}", byte);
        } else {
            out += c;
        }
    }
    if (text.size() > longest) out += "...";
    return out;
}

std::optional<std::string> key_fault(std::string_view key) {
    if (key.empty()) return "has an empty name, expected 1 to 65535 bytes";
    if (key.size() > max_key_bytes) {
        return fmt::format("has a name of {} bytes, expected 1 to {}", key.size(), max_key_bytes);
    }
    return control_fault("name", key);
}

std::optional<std::string> tensor_name_fault(std::string_view name) {
    if (name.empty() || name.size() > max_tensor_name_bytes) {
        return fmt::format("has a name of {} bytes, expected 1 to {}", name.size(),
                           max_tensor_name_bytes);
    }
    return control_fault("name", name);
}

std::optional<std::string> alignment_fault(const Value& value) {
    const auto* alignment = std::get_if<uint32_t>(&value);
    if (alignment == nullptr) {
        return fmt::format("has type {}, expected u32", describe_type(value));
    }
    const uint32_t a = *alignment;
    if (a == 0 || (a & (a - 1)) != 0 || a > max_alignment) {
        return fmt::format("is {}, expected a power of two from 1 to {}", a, max_alignment);
    }
    return std::nullopt;
}

std::optional<std::string> tensor_type_fault(uint32_t type) {
    if (type >= GGML_TYPE_COUNT) {
        return fmt::format("has type number {}, expected less than {} (made for a newer ggml?)",
                           type, static_cast<int>(GGML_TYPE_COUNT));
    }
    // ggml keeps the numbers of types it no longer knows, with blocks of no elements.
    const auto known = static_cast<ggml_type>(type);
    if (ggml_blck_size(known) <= 0 || ggml_type_size(known) == 0) {
        return fmt::format("has type number {}, which ggml no longer supports", type);
    }
    return std::nullopt;
}

std::optional<std::string> shape_fault(ggml_type type, std::span<const uint64_t> ne,
                                       uint64_t& bytes) {
    if (ne.empty() || ne.size() > GGML_MAX_DIMS) {
        return fmt::format("has {} dimensions, expected 1 to {}", ne.size(), GGML_MAX_DIMS);
    }
    for (size_t i = 0; i < ne.size(); ++i) {
        if (ne[i] == 0 || ne[i] > max_i64) {
            return fmt::format("has {} elements in dimension {}, expected 1 to {}", ne[i], i,
                               max_i64);
        }
    }
    const auto block = static_cast<uint64_t>(ggml_blck_size(type));
    if (ne[0] % block != 0) {
        return fmt::format("has rows of {} elements, expected a multiple of {} for type {}", ne[0],
                           block, ggml_type_name(type));
    }
    std::optional<uint64_t> size = checked_mul(ne[0] / block, ggml_type_size(type));
    std::optional<uint64_t> elements = ne[0];
    for (size_t i = 1; i < ne.size(); ++i) {
        if (size) size = checked_mul(*size, ne[i]);
        if (elements) elements = checked_mul(*elements, ne[i]);
    }
    if (!size || *size > max_i64 || !elements || *elements > max_i64) {
        return fmt::format("has shape [{}] of type {}, expected fewer than 2^63 elements and bytes",
                           fmt::join(ne, ", "), ggml_type_name(type));
    }
    bytes = *size;
    return std::nullopt;
}

}  // namespace pleat::gguf
