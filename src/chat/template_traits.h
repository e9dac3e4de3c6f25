#pragma once

#include <string>
#include <string_view>

#include "chat/chat_messages.h"
#include "chat/chat_parser.h"
#include "text/chat_template.h"

namespace pleat {

/// What a template is like: read off its text where that is enough, else off what it makes of
/// sample conversations.
struct TemplateTraits {
    TemplateNeeds needs = {};
    ToolForm tools = ToolForm::none;
    ReasoningMarks reasoning = {};
};

/// Throws Error, which begins with "chat template", when no conversation can be rendered, or
/// nothing of it shows.
TemplateTraits traits_of(const ChatTemplate& chat, std::string_view template_text);

}  // namespace pleat
