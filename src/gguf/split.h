#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pleat::gguf {

/// The parts of a split model are called `<prefix>-00001-of-00003.gguf`; numbers count from 1.
struct SplitName {
    std::string prefix;  ///< with its directory
    uint32_t number = 0;
    uint32_t count = 0;
    bool operator==(const SplitName&) const = default;
};

/// No value when the path has not that form.
std::optional<SplitName> parse_split_name(std::string_view path);
std::string split_path(std::string_view prefix, uint32_t number, uint32_t count);

}  // namespace pleat::gguf
