#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pleat::jinja {

// What Python's str can do, for methods and filters alike.

/// Without white space, or without characters of `set`, at the ends that are asked for.
std::string stripped(std::string_view text, bool left, bool right);
std::string stripped(std::string_view text, std::string_view set, bool left, bool right);
/// At most `limit` parts are cut off; negative: no limit. `separator` is not empty.
std::vector<std::string> split(std::string_view text, std::string_view separator, int64_t limit);
std::vector<std::string> split_right(std::string_view text, std::string_view separator,
                                     int64_t limit);
/// At runs of white space.
std::vector<std::string> words(std::string_view text, int64_t limit);
std::vector<std::string> lines(std::string_view text, bool keep_ends);
/// The first `limit` times; negative: each time.
std::string replaced(std::string_view text, std::string_view from, std::string_view to,
                     int64_t limit);
std::string capitalized(std::string_view text);
/// Python's str.title(): any letter behind a character that is none begins a word.
std::string titled(std::string_view text);
/// Jinja's indent filter.
std::string indented(std::string_view text, std::string_view by, bool first, bool blank);
/// A number of characters that a template asks for: 0 when it is negative. Throws Abort when it is
/// more than any layout needs.
size_t width_of(int64_t width);
std::string html_escaped(std::string_view text);

}  // namespace pleat::jinja
