#pragma once

#include <string>
#include <string_view>

#include "chat/chat_messages.h"
#include "chat/chat_parser.h"
#include "text/chat_template.h"

namespace pleat {

/// The form of tool calls that a template's text shows.
ToolForm tool_form_of(std::string_view template_text);
/// The marks around reasoning that it knows; empty ones when it knows none.
ReasoningMarks reasoning_marks_of(std::string_view template_text);

/// Why no conversation at all can be rendered; empty when one can.
std::string cannot_run(const ChatTemplate& chat);

/// What the template makes of sample conversations, tried out.
MessageNeeds message_needs_of(const ChatTemplate& chat, std::string_view template_text);

}  // namespace pleat
