#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/file.h"

namespace pleat {

// Far above any model, far below what would overflow a product of two of them.
inline constexpr uint32_t max_dimension = 1U << 24;

/// "<file>: key <key> is <found>, expected <expected>"
[[noreturn]] void bad_key(const gguf::File& file, const std::string& key, const std::string& found,
                          const std::string& expected);

/// Reads the keys under "<arch>." and proves them to be in a range. Throws Error that names the
/// file, the key, what was found and what is expected.
class Keys {
  public:
    Keys(const gguf::File& file, std::string_view arch)
        : file_(file), prefix_(std::string(arch) + ".") {}

    std::string full(std::string_view key) const { return prefix_ + std::string(key); }
    const gguf::File& file() const { return file_; }
    bool has(std::string_view key) const { return file_.find(full(key)) != nullptr; }

    uint32_t required(std::string_view key, uint32_t low, uint32_t high) const;
    uint32_t optional(std::string_view key, uint32_t fallback, uint32_t low, uint32_t high) const;
    /// Finite and above 0.
    float positive(std::string_view key, float fallback) const;
    float finite(std::string_view key, float fallback) const;
    bool boolean(std::string_view key, bool fallback) const;
    /// One value for all layers, or an array with one entry per block of the file.
    std::vector<uint32_t> per_layer(std::string_view key, uint32_t n_block, uint32_t low,
                                    std::vector<uint32_t> fallback) const;
    [[noreturn]] void missing(std::string_view key) const;

  private:
    uint32_t in_range(std::string_view key, uint32_t value, uint32_t low, uint32_t high) const;

    const gguf::File& file_;
    std::string prefix_;
};

}  // namespace pleat
