#pragma once

#include <string>
#include <string_view>

namespace pleat::jinja {

// Texts are UTF-8; what a template counts are characters, as in Python. Bytes that are no UTF-8
// count as a character each and stay as they are.

std::u32string characters(std::string_view text);
std::string utf8(std::u32string_view characters);
void append_utf8(std::string& text, char32_t c);
size_t n_characters(std::string_view text);

/// Python's str.isspace().
bool is_space(char32_t c);
/// Bytes of white space at the ends.
size_t leading_space(std::string_view text);
size_t trailing_space(std::string_view text);

/// Of Latin, Greek and Cyrillic letters whose two cases are one character each.
char32_t to_upper(char32_t c);
char32_t to_lower(char32_t c);
std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);

}  // namespace pleat::jinja
