#pragma once

#include <ggml.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "gguf/value.h"

/// What the format allows, in one place: the reader refuses what breaks these rules and the writer
/// does not produce it. A function that judges returns the fault in words that continue "key <k> "
/// or "tensor <t> ", or nothing when all is well.
namespace pleat::gguf {

inline constexpr std::string_view magic = "GGUF";
inline constexpr std::string_view alignment_key = "general.alignment";
inline constexpr uint32_t default_alignment = 32;
/// Nothing needs more than a huge page's part; a larger one only makes a file of padding.
inline constexpr uint32_t max_alignment = 1U << 20U;
inline constexpr uint64_t max_key_bytes = 65535;
inline constexpr uint64_t max_tensor_name_bytes = GGML_MAX_NAME - 1;

/// Text from a file, fit for one line of a message: quotes, backslashes and all that is not
/// printable ASCII are escaped, and what is long is cut.
std::string escaped(std::string_view text);

std::optional<std::string> key_fault(std::string_view key);
std::optional<std::string> tensor_name_fault(std::string_view name);
std::optional<std::string> alignment_fault(const Value& value);

/// The number is one of a type that this ggml can hold; only then may it be cast to ggml_type.
std::optional<std::string> tensor_type_fault(uint32_t type);

/// Dimensions as stored (fastest first): 1 to 4, each at least 1, rows made of whole blocks of a
/// proved `type`, and a size in bytes, put into `bytes`, that fits into 63 bits.
std::optional<std::string> shape_fault(ggml_type type, std::span<const uint64_t> ne,
                                       uint64_t& bytes);

}  // namespace pleat::gguf
