#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "plan/shape.h"
#include "plan/spec.h"

namespace pleat {

/// Text that a person wrote, fit for one line of ASCII: quotes and backslashes get a backslash,
/// every byte that is no printable ASCII becomes `\n`, `\t` or `\xNN`.
std::string escaped(std::string_view text);

/// The place of the byte at `offset` in a flag's text. Long texts keep only what surrounds it.
Place place_at(std::string_view flag, std::string_view text, size_t offset);

/// `flag "text": item (character 7) rule`, without the parts that are missing:
/// a spec that code made has no flag, one from a file perhaps no text.
std::string located(const Place& place, std::string_view item, std::string_view rule);

/// Throws Error with the message of `located`.
template <typename... Args>
[[noreturn]] void fail_at(const Place& place, std::string_view item,
                          fmt::format_string<Args...> rule, Args&&... args) {
    throw Error(located(place, item, fmt::format(rule, std::forward<Args>(args)...)));
}

/// "this model has 64 layers", and that MTP layers do not count where it has some.
std::string has_layers(const ModelShape& shape);

}  // namespace pleat
