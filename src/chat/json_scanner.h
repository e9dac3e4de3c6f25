#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pleat {

/// Checks one JSON value (RFC 8259) byte by byte, so that its text can be passed on while it comes.
/// Expects valid UTF-8. Keys that come twice are not looked for.
class JsonScanner {
  public:
    static constexpr size_t max_depth = 200;

    enum class Status : uint8_t {
        more,  ///< valid so far
        done,  ///< the value is whole; only for objects, arrays and strings
        bad,   ///< no JSON; also more than max_depth nested
    };
    /// What may come next, white space aside.
    enum class Expect : uint8_t { value, value_or_end, key, key_or_end, colon, separator, inside };

    Status feed(char c);

    /// Objects and arrays that are open.
    size_t depth() const { return open_.size(); }
    Expect expects() const { return expect_; }

  private:
    /// Inside of what.
    enum class Part : uint8_t {
        string,
        escape,
        unicode,
        low_surrogate,    ///< wants the backslash of the second half of a pair
        low_surrogate_u,  ///< and its u
        literal,
        minus,
        zero,
        integer,
        point,
        fraction,
        exponent,
        exponent_sign,
        exponent_digits,
    };

    Status begin_value(char c);
    Status inside(char c);
    Status unicode(char c);
    Status number(char c);
    Status between(char c);
    Status open(char bracket);
    Status close(char bracket);
    Status value_ended();
    Status enter(Part part);

    std::vector<char> open_;
    Expect expect_ = Expect::value;
    Part part_ = Part::string;
    bool is_key_ = false;
    const char* literal_ = "";  ///< what is left of true, false or null
    int digits_ = 0;            ///< of a \u
    unsigned code_ = 0;
    bool low_ = false;  ///< the \u is the second half of a pair
};

}  // namespace pleat
