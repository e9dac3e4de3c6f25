#include "chat/template_traits.h"

#include <optional>

#include "base/error.h"

namespace pleat {
namespace {

using Json = nlohmann::ordered_json;

bool has(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

/// Nothing when the template refuses the messages.
std::optional<std::string> render(const ChatTemplate& chat, Json messages) {
    try {
        return chat.render(TemplateInputs{.messages = std::move(messages)});
    } catch (const Error&) {
        return {};
    }
}

bool shows(const std::optional<std::string>& text, const std::string& part) {
    return text && has(*text, part);
}

Json message(std::string_view role, Json content) {
    return {{"role", role}, {"content", std::move(content)}};
}

Json part(Json text) { return Json::array({{{"type", "text"}, {"text", std::move(text)}}}); }

Json call(Json content, Json arguments) {
    Json result = message("assistant", std::move(content));
    result["tool_calls"] =
        Json::array({{{"id", "call00001"},
                      {"type", "function"},
                      {"function", {{"name", "some_tool"}, {"arguments", std::move(arguments)}}}}});
    return result;
}

}  // namespace

ToolForm tool_form_of(std::string_view text) {
    if (has(text, "<|tool_call>") && has(text, "<tool_call|>")) return ToolForm::gemma4;
    if (has(text, "<function=") && has(text, "<parameter=")) return ToolForm::qwen35;
    if (has(text, "<tool_call>")) return ToolForm::hermes;
    if (has(text, "<|start_header_id|>") && has(text, "\"parameters\": ")) return ToolForm::llama3;
    return ToolForm::none;
}

ReasoningMarks reasoning_marks_of(std::string_view text) {
    if (has(text, "</think>")) return {"<think>", "</think>"};
    if (has(text, "<|channel>thought")) return {"<|channel>thought", "<channel|>"};
    if (has(text, "[/THINK]")) return {"[THINK]", "[/THINK]"};
    return {};
}

std::string cannot_run(const ChatTemplate& chat) {
    const std::string said = "pleat-needle";
    std::string reason;
    for (const Json& content : {Json(said), part(said)}) {
        try {
            if (has(chat.render(
                        TemplateInputs{.messages = Json::array({message("user", content)})}),
                    said)) {
                return {};
            }
            // A name such as "chatml", which llama.cpp knows, is Jinja text, too.
            reason =
                "chat template shows nothing of what the user says: expected Jinja text, not the "
                "name of a template";
        } catch (const Error& e) {
            if (reason.empty()) reason = e.what();
        }
    }
    return reason;
}

MessageNeeds message_needs_of(const ChatTemplate& chat, std::string_view template_text) {
    const Json needle = "pleat-needle";
    MessageNeeds needs;
    const auto conversation = [&](auto... said) { return render(chat, Json::array({said...})); };
    needs.content_parts = !shows(conversation(message("user", needle)), needle) &&
                          shows(conversation(message("user", part(needle))), needle);
    const auto content = [&](Json text) { return needs.content_parts ? part(text) : text; };
    const Json hello = message("user", content("Hi"));
    needs.system_role = shows(conversation(message("system", content(needle)), hello), needle);
    needs.developer_role = has(template_text, "developer");

    const Json arguments{{"needle", "value"}};
    const Json as_text = arguments.dump();
    needs.null_content = shows(conversation(hello, call(nullptr, arguments)), "needle") ||
                         shows(conversation(hello, call(nullptr, as_text)), "needle");
    const Json silence = needs.null_content ? Json() : content("");
    const auto as_object = conversation(hello, call(silence, arguments));
    // A list printed in Python's way means that the template expected a text.
    needs.arguments_text = (!shows(as_object, "needle") || has(*as_object, "'needle'")) &&
                           shows(conversation(hello, call(silence, as_text)), "needle");
    return needs;
}

}  // namespace pleat
