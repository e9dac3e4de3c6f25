#include "chat/chat_messages.h"

#include <map>
#include <string>

#include "base/error.h"

namespace pleat {
namespace {

using Json = nlohmann::ordered_json;

/// Valid JSON becomes what it says; any other text stays as it is.
Json arguments(const Json& given, bool as_text) {
    if (as_text) return given.is_string() ? given : Json(given.dump());
    if (!given.is_string()) return given;
    Json parsed = Json::parse(given.get<std::string>(), nullptr, false);
    return parsed.is_discarded() ? given : parsed;
}

Json tool_calls(const Json& calls, const TemplateNeeds& needs, const std::string& where) {
    if (!calls.is_array()) fail("{}: must be a list", where);
    Json result = Json::array();
    for (size_t i = 0; i < calls.size(); ++i) {
        Json call = calls[i];
        const std::string at = fmt::format("{}[{}]", where, i);
        if (!call.is_object() || !call.contains("function") || !call["function"].is_object()) {
            fail("{}: has no function", at);
        }
        Json& function = call["function"];
        if (!function.contains("name") || !function["name"].is_string()) {
            fail("{}.function: has no name", at);
        }
        function["arguments"] =
            arguments(function.value("arguments", Json::object()), needs.arguments_text);
        if (!call.contains("type")) call["type"] = "function";
        result.push_back(std::move(call));
    }
    return result;
}

class Normaliser {
  public:
    explicit Normaliser(const TemplateNeeds& needs) : needs_(needs) {}

    void add(const Json& message, size_t index) {
        const std::string where = fmt::format("messages[{}]", index);
        if (!message.is_object()) fail("{}: must be an object", where);
        const auto role_field = message.find("role");
        if (role_field == message.end() || !role_field->is_string()) fail("{}: has no role", where);
        std::string role = role_field->get<std::string>();
        if (role == "developer" && !needs_.developer_role) role = "system";

        const Json content = message.value("content", Json());
        std::string text = content_text(content, where + ".content");
        const bool calls = message.contains("tool_calls") && !message["tool_calls"].is_null() &&
                           message["tool_calls"] != Json::array();
        if (content.is_null() && !calls && role != "assistant") fail("{}: has no content", where);

        if (role == "system" && !needs_.system_role) {
            // The model knows no such role: it reads the text before what the user says next.
            system_ += (system_.empty() ? "" : "\n\n") + text;
            return;
        }
        if (role == "user" && !system_.empty()) {
            text = std::exchange(system_, {}) + "\n\n" + text;
        }
        Json result = message;
        result["role"] = role;
        result["content"] =
            needs_.content_parts ? Json::array({{{"type", "text"}, {"text", text}}}) : Json(text);
        if (calls) {
            if (content.is_null() && needs_.null_content) result["content"] = nullptr;
            result["tool_calls"] = tool_calls(message["tool_calls"], needs_, where + ".tool_calls");
            for (const Json& call : result["tool_calls"]) {
                if (call.contains("id")) {
                    names_[call["id"].dump()] = call["function"]["name"].get<std::string>();
                }
            }
        } else {
            result.erase("tool_calls");
        }
        if (role == "tool") name_tool(result);
        if (result.contains("reasoning_content") && !result["reasoning_content"].is_string()) {
            if (!result["reasoning_content"].is_null()) {
                fail("{}.reasoning_content: must be a text", where);
            }
            result.erase("reasoning_content");
        }
        messages_.push_back(std::move(result));
    }

    Json finish() {
        if (!system_.empty()) messages_.push_back({{"role", "user"}, {"content", system_}});
        return std::move(messages_);
    }

  private:
    /// Some templates want the tool's name with its answer; clients give the call's id.
    void name_tool(Json& message) const {
        if (message.contains("name") || !message.contains("tool_call_id")) return;
        const auto name = names_.find(message["tool_call_id"].dump());
        if (name != names_.end()) message["name"] = name->second;
    }

    const TemplateNeeds needs_;
    Json messages_ = Json::array();
    std::string system_;
    std::map<std::string, std::string> names_;  ///< of calls, by id
};

}  // namespace

std::string content_text(const Json& content, const std::string& where) {
    if (content.is_null()) return {};
    if (content.is_string()) return content.get<std::string>();
    if (!content.is_array()) fail("{}: must be a text, null or a list of parts", where);
    std::string text;
    for (size_t i = 0; i < content.size(); ++i) {
        const Json& part = content[i];
        if (part.is_string()) {
            text += part.get<std::string>();
            continue;
        }
        const std::string at = fmt::format("{}[{}]", where, i);
        if (!part.is_object()) fail("{}: must be an object", at);
        const auto type = part.find("type");
        if (type != part.end() && *type != "text") {
            fail("{}: only parts of type text are supported, not {}", at, type->dump());
        }
        const auto value = part.find("text");
        if (value == part.end() || !value->is_string()) fail("{}: has no text", at);
        text += value->get<std::string>();
    }
    return text;
}

nlohmann::ordered_json template_messages(const nlohmann::ordered_json& messages,
                                         const TemplateNeeds& needs) {
    Normaliser normaliser(needs);
    for (size_t i = 0; i < messages.size(); ++i) normaliser.add(messages[i], i);
    return normaliser.finish();
}

}  // namespace pleat
