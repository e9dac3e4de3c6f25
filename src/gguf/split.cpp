#include "gguf/split.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace pleat::gguf {
namespace {

constexpr size_t n_digits = 5;

std::optional<uint32_t> parse_number(std::string_view digits) {
    uint32_t value = 0;
    const auto* const end = digits.data() + digits.size();
    const auto result = std::from_chars(digits.data(), end, value);
    if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
    return value;
}

}  // namespace

std::optional<SplitName> parse_split_name(std::string_view path) {
    constexpr std::string_view form = "-00000-of-00000.gguf";
    constexpr size_t count_at = std::string_view("-00000-of-").size();
    if (path.size() < form.size()) return std::nullopt;
    const std::string_view tail = path.substr(path.size() - form.size());
    for (size_t i = 0; i < form.size(); ++i) {
        if (form[i] != '0' && form[i] != tail[i]) return std::nullopt;
    }
    const auto number = parse_number(tail.substr(1, n_digits));
    const auto count = parse_number(tail.substr(count_at, n_digits));
    if (!number || !count) return std::nullopt;
    return SplitName{std::string(path.substr(0, path.size() - form.size())), *number, *count};
}

std::string split_path(std::string_view prefix, uint32_t number, uint32_t count) {
    return fmt::format("{}-{:05}-of-{:05}.gguf", prefix, number, count);
}

}  // namespace pleat::gguf
