#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pleat {

/// The pattern of a `format` of strings: what matches it has the format, though not all of the
/// rarer forms match. Nothing for an unknown one.
std::optional<std::string_view> format_pattern(std::string_view format);
/// "date, time, ..."
std::string format_names();

}  // namespace pleat
