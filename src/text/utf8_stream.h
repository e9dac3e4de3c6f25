#pragma once

#include <string>
#include <string_view>

namespace pleat {

/// Cuts a stream of bytes where characters end. Tokens may hold a part of a character; JSON and
/// terminals want whole ones. What can no longer become a character (Unicode 15, section 3.9:
/// overlong forms, surrogates, above U+10FFFF, stray bytes) comes out as one U+FFFD per maximal
/// subpart, as in every browser.
class Utf8Stream {
  public:
    /// The characters that these bytes complete.
    std::string feed(std::string_view bytes);
    /// The end: what is still incomplete becomes U+FFFD.
    std::string flush();

    /// Bytes held back, at most three.
    std::string_view pending() const { return pending_; }

  private:
    std::string pending_;
};

/// All of it at once: valid UTF-8, equal to `bytes` where they were valid.
std::string to_utf8(std::string_view bytes);
bool is_utf8(std::string_view bytes);

}  // namespace pleat
