#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace pleat {

/// What stops an operation: one line that says where, what was found, the rule, and what would be
/// right. `main` prints it and exits with 1. What a caller is meant to branch on is a return value.
class Error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// Throws Error with a formatted message.
template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
    throw Error(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace pleat
