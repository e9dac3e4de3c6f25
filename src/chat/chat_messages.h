#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace pleat {

/// What a template wants to find, where templates differ.
struct TemplateNeeds {
    bool system_role = true;      ///< else its text goes to the first user message
    bool developer_role = false;  ///< else it is the system's
    bool content_parts = false;   ///< content as [{"type": "text", "text": ...}], not as a text
    bool null_content = false;    ///< of a message that only calls tools; else an empty text
    bool arguments_text = false;  ///< of tool calls as JSON text, not as an object
    bool tools_defined = true;    ///< without tools, the variable is None; else there is none
};

/// The text of a message's content in any of its forms; `where` names it in errors.
std::string content_text(const nlohmann::ordered_json& content, const std::string& where);

/// Messages of OpenAI's API as the template wants them. Throws Error that names the message when
/// one is malformed or holds anything but text.
nlohmann::ordered_json template_messages(const nlohmann::ordered_json& messages,
                                         const TemplateNeeds& needs);

}  // namespace pleat
