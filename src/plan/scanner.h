#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "plan/message.h"
#include "plan/spec.h"

namespace pleat {

/// Reads the tokens of one flag's text, or of a part of it, and knows where each stands. Spaces
/// between tokens are ignored; a number ends at a space.
class Scanner {
  public:
    /// Reads text[begin, end); places count from the start of the whole text, which is borrowed.
    Scanner(std::string_view flag, std::string_view text, size_t begin, size_t end);
    Scanner(std::string_view flag, std::string_view text);

    /// Where the next token starts, counted from 0.
    size_t offset();
    bool at_end();

    /// Is this the next token? `take` also moves behind it.
    bool next_is(std::string_view token);
    bool take(std::string_view token);

    /// A number of plain decimal digits, if one comes next. Throws Error when it does not fit.
    std::optional<int64_t> number();

    /// The letters, digits, points and signs that come next: a factor, or a word nobody knows.
    std::string_view word();

    Place place(size_t at) const { return place_at(flag_, text_, at); }

    /// Throws Error: what comes next, or the end of the text, cannot stand `where`.
    [[noreturn]] void fail_here(std::string_view where, std::string_view rule);

  private:
    std::string_view flag_;
    std::string_view text_;
    size_t pos_;
    size_t end_;
};

}  // namespace pleat
