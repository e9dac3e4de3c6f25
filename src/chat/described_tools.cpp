#include "chat/described_tools.h"

#include <algorithm>
#include <string>
#include <utility>

namespace pleat {
namespace {

using Json = nlohmann::ordered_json;

std::string description(const std::vector<Tool>& tools) {
    std::string text =
        "You can call functions. Each of these lines describes one, its arguments by a JSON "
        "Schema:\n\n";
    for (const Tool& tool : tools) {
        Json line{{"name", tool.name}};
        if (!tool.description.empty()) line["description"] = tool.description;
        line["parameters"] = tool.parameters;
        text += line.dump() + "\n";
    }
    return text +
           "\nTo call a function, write nothing but\n<tool_call>\n{\"name\": name, \"arguments\": "
           "object}\n</tool_call>\nand wait: its result comes between <tool_response> marks. "
           "Answer without a call when none is needed.";
}

std::string text_of(const Json& content) {
    if (content.is_string()) return content.get<std::string>();
    std::string text;
    if (!content.is_array()) return text;
    for (const Json& part : content) {
        if (part.is_object() && part.contains("text") && part["text"].is_string()) {
            text += part["text"].get<std::string>();
        }
    }
    return text;
}

bool is_call(const Json& call) {
    return call.is_object() && call.contains("function") && call["function"].is_object();
}

std::string call_text(const Json& call) {
    const Json& function = call["function"];
    const Json arguments = function.value("arguments", Json::object());
    return "<tool_call>\n{\"name\": " + function.value("name", Json()).dump() +
           ", \"arguments\": " +
           (arguments.is_string() ? arguments.get<std::string>() : arguments.dump()) +
           "}\n</tool_call>";
}

void add_text(Json& message, const std::string& text) {
    const std::string before = text_of(message["content"]);
    message["content"] = before.empty() ? text : before + "\n" + text;
}

}  // namespace

Json described_tools(const Json& messages, const std::vector<Tool>& tools) {
    if (!messages.is_array()) return messages;
    Json result = Json::array();
    for (const Json& given : messages) {
        Json message = given;
        const Json role = given.is_object() ? given.value("role", Json()) : Json();
        if (role == "assistant" && given.contains("tool_calls") && given["tool_calls"].is_array()) {
            for (const Json& call : given["tool_calls"]) {
                if (is_call(call)) add_text(message, call_text(call));
            }
            if (std::ranges::all_of(given["tool_calls"], is_call)) message.erase("tool_calls");
        }
        if (role == "tool") {
            const std::string answer = "<tool_response>\n" +
                                       text_of(given.value("content", Json())) +
                                       "\n</tool_response>";
            // Roles take turns in many templates.
            if (!result.empty() && result.back().value("role", Json()) == "user") {
                add_text(result.back(), answer);
                continue;
            }
            message = {{"role", "user"}, {"content", answer}};
        }
        result.push_back(std::move(message));
    }
    if (tools.empty()) return result;
    const Json first =
        result.empty() || !result[0].is_object() ? Json() : result[0].value("role", Json());
    if (first == "system" || first == "developer") {
        const std::string said = text_of(result[0].value("content", Json()));
        result[0]["content"] = said + (said.empty() ? "" : "\n\n") + description(tools);
    } else {
        result.insert(result.begin(), Json{{"role", "system"}, {"content", description(tools)}});
    }
    return result;
}

}  // namespace pleat
