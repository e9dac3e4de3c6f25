#pragma once

#include <string>
#include <utility>
#include <vector>

namespace pleat {

/// A set of Unicode characters (surrogates are none), as sorted ranges with both ends in.
class CharSet {
  public:
    CharSet() = default;
    CharSet(std::initializer_list<std::pair<char32_t, char32_t>> ranges);
    static CharSet all();

    void add(char32_t first, char32_t last);
    void add(const CharSet& other);
    CharSet complement() const;
    CharSet without(const CharSet& other) const;
    bool contains(char32_t c) const;
    bool empty() const { return ranges_.empty(); }
    /// When it is only one character.
    bool single() const;
    const std::vector<std::pair<char32_t, char32_t>>& ranges() const { return ranges_; }

  private:
    std::vector<std::pair<char32_t, char32_t>> ranges_;
};

/// The characters of valid UTF-8, which this does not check.
std::u32string utf32(std::string_view text);
std::string utf8(char32_t c);

}  // namespace pleat
