#pragma once

#include <string_view>

namespace pleat {

/// The first phrase of a text: after white space, up to the end of its line, or to a full stop,
/// exclamation or question mark that white space or the end follows. "3.5" has no end inside.
struct Phrase {
    std::string_view text;  ///< without white space and marks at its end
    bool ended = false;     ///< seen to end: more text could not lengthen it
};
Phrase first_phrase(std::string_view text);

}  // namespace pleat
