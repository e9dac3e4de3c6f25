#pragma once

#include <functional>
#include <string>

#include "cli/line_reader.h"

namespace pleat::cli {

/// One thing that a person entered, of one or several lines.
struct ChatInput {
    enum class Kind { text, command, interrupted, end };
    Kind kind = Kind::text;
    std::string text = {};   ///< of a command: with its slash
    bool discarded = false;  ///< of an interruption: something was entered before it
};

/// Joins lines: one that ends with a backslash goes on in the next, and what stands between """
/// and """ is one text, whatever it begins with. A line that begins with a slash is a command.
/// Throws Error when the lines end inside """.
ChatInput read_chat_input(const std::function<LineEvent(const std::string& prompt)>& read);

}  // namespace pleat::cli
