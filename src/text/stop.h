#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace pleat {

/// Looks for stop strings in a stream of text. Text that may still become a stop string is held
/// back, so that nobody sees half of one. The stop string that is complete first wins, the longest
/// when several end at the same byte; how the stream is cut plays no part.
class StopMatcher {
  public:
    /// Empty stop strings are ignored: they would match before the first character.
    explicit StopMatcher(std::vector<std::string> stops);

    /// Text that is safe to show. Nothing more comes after stopped().
    std::string feed(std::string_view text);
    /// The end of the stream: what was held back and became no stop string.
    std::string flush();

    bool stopped() const { return !matched_.empty(); }
    /// The stop string found; empty as long as there is none.
    const std::string& matched() const { return matched_; }

  private:
    /// Knuth, Morris and Pratt's matcher: linear in the text however the stop string repeats.
    struct Stop {
        std::string text;
        std::vector<size_t> border;  ///< of the first i bytes: longest proper prefix that ends them
        size_t matched = 0;          ///< bytes of `text` that the stream ends with
    };
    static Stop make_stop(std::string text);
    static void advance(Stop& stop, char c);

    std::vector<Stop> stops_;
    std::string held_;
    std::string matched_;
};

}  // namespace pleat
