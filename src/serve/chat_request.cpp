#include "serve/chat_request.h"

#include <algorithm>

#include "serve/constraint_fields.h"

namespace pleat {
namespace {

using nlohmann::ordered_json;

void check_part(const ordered_json& part, const std::string& param) {
    const Fields fields(part, param);
    const std::string type = fields.text("type").value_or("text");
    if (type == "refusal" && fields.text("refusal")) return;
    if (type != "text") {
        refuse_field(fields.param("type"), "is not offered: a model here reads text only");
    }
    if (!fields.text("text")) refuse_field(fields.param("text"), "is missing");
}

void check_content(const Fields& message, bool may_be_absent) {
    const ordered_json* const content = message.find("content");
    if (content == nullptr) {
        if (!may_be_absent) refuse_field(message.param("content"), "is missing");
        return;
    }
    if (content->is_string()) return;
    if (!content->is_array()) {
        refuse_field(message.param("content"), "must be a text or a list of parts");
    }
    size_t i = 0;
    for (const ordered_json& part : *content) {
        check_part(part, fmt::format("{}[{}]", message.param("content"), i++));
    }
}

void check_calls(const Fields& message) {
    const ordered_json* const calls = message.find("tool_calls");
    if (calls == nullptr) return;
    size_t i = 0;
    for (const ordered_json& call : as_array(*calls, message.param("tool_calls"), SIZE_MAX)) {
        const Fields fields(call, fmt::format("{}[{}]", message.param("tool_calls"), i++));
        const ordered_json* const function = fields.find("function");
        if (function == nullptr) refuse_field(fields.param("function"), "is missing");
        const Fields inner(*function, fields.param("function"));
        if (!inner.text("name")) refuse_field(inner.param("name"), "is missing");
    }
}

/// OpenAI's newer name for what templates call the system.
std::string known_role(std::string role) { return role == "developer" ? "system" : role; }

ordered_json messages_field(const Fields& fields) {
    const ordered_json* const messages = fields.find("messages");
    if (messages == nullptr) refuse_field(fields.param("messages"), "is missing");
    if (as_array(*messages, fields.param("messages"), SIZE_MAX).empty()) {
        refuse_field(fields.param("messages"), "must not be empty");
    }
    ordered_json result = *messages;
    for (size_t i = 0; i < result.size(); ++i) {
        const Fields message(result[i], fmt::format("{}[{}]", fields.param("messages"), i));
        const auto role = message.text("role");
        if (!role || role->empty()) refuse_field(message.param("role"), "is missing");
        check_content(message, *role == "assistant");
        check_calls(message);
        for (const std::string_view name : {"name", "tool_call_id", "reasoning_content"}) {
            message.text(name);
        }
        result[i]["role"] = known_role(*role);
    }
    return result;
}

ordered_json tools_field(const Fields& fields, const RequestLimits& limits) {
    const ordered_json* const tools = fields.find("tools");
    if (tools == nullptr) return ordered_json::array();
    size_t i = 0;
    for (const ordered_json& tool : as_array(*tools, fields.param("tools"), limits.tools)) {
        const Fields entry(tool, fmt::format("{}[{}]", fields.param("tools"), i++));
        if (entry.text("type").value_or("function") != "function") {
            refuse_field(entry.param("type"), "must be \"function\"");
        }
        const ordered_json* const function = entry.find("function");
        if (function == nullptr) refuse_field(entry.param("function"), "is missing");
        const Fields inner(*function, entry.param("function"));
        if (inner.text("name").value_or("").empty()) {
            refuse_field(inner.param("name"), "is missing");
        }
        if (const ordered_json* const schema = inner.find("parameters")) {
            as_object(*schema, inner.param("parameters"));
        }
    }
    return *tools;
}

bool has_tool(const ordered_json& tools, const std::string& name) {
    return std::ranges::any_of(
        tools, [&](const ordered_json& tool) { return tool.at("function").at("name") == name; });
}

void read_tool_choice(const Fields& fields, ChatRequest& request) {
    const ordered_json* const choice = fields.find("tool_choice");
    if (choice == nullptr) return;
    const std::string param = fields.param("tool_choice");
    if (choice->is_string()) {
        const std::string& text = choice->get_ref<const std::string&>();
        if (text == "none") {
            request.tool_choice = ToolChoice::none;
        } else if (text == "required") {
            request.tool_choice = ToolChoice::required;
        } else if (text != "auto") {
            refuse_field(param, "must be \"none\", \"auto\", \"required\" or a function");
        }
    } else {
        const Fields named(*choice, param);
        const ordered_json* const function = named.find("function");
        if (named.text("type").value_or("function") != "function" || function == nullptr) {
            refuse_field(param, "must be {\"type\": \"function\", \"function\": {\"name\": ...}}");
        }
        const Fields inner(*function, named.param("function"));
        request.tool_name = inner.text("name").value_or("");
        request.tool_choice = ToolChoice::named;
        if (!has_tool(request.tools, request.tool_name)) {
            refuse_field(inner.param("name"), "is none of the tools");
        }
    }
    if (request.tool_choice == ToolChoice::required && request.tools.empty()) {
        refuse_field(param, "there are no tools");
    }
}

ReasoningFormat reasoning_field(const Fields& fields, ReasoningFormat otherwise) {
    const auto text = fields.text("reasoning_format");
    if (!text) return otherwise;
    if (*text == "none") return ReasoningFormat::none;
    if (*text == "auto" || *text == "deepseek") return ReasoningFormat::separate;
    refuse_field(fields.param("reasoning_format"), "must be \"none\", \"auto\" or \"deepseek\"");
}

ordered_json template_arguments_field(const Fields& fields, const ordered_json& defaults) {
    ordered_json arguments = defaults;
    // Templates that know degrees of thinking know them by OpenAI's name.
    if (const auto effort = fields.text("reasoning_effort")) {
        arguments["reasoning_effort"] = *effort;
    }
    if (const ordered_json* const own = fields.find("chat_template_kwargs")) {
        for (const auto& [name, value] :
             as_object(*own, fields.param("chat_template_kwargs")).items()) {
            arguments[name] = value;
        }
    }
    return arguments;
}

}  // namespace

ChatRequest chat_fields(const Fields& fields, const ChatDefaults& defaults,
                        const RequestLimits& limits) {
    ChatRequest request;
    request.messages = messages_field(fields);
    request.tools = tools_field(fields, limits);
    read_tool_choice(fields, request);
    request.parallel_tool_calls = fields.boolean("parallel_tool_calls", false);
    request.template_arguments = template_arguments_field(fields, defaults.template_arguments);
    request.add_generation_prompt = fields.boolean("add_generation_prompt", true);
    request.continue_answer = defaults.continue_answers;
    request.reasoning = reasoning_field(fields, defaults.reasoning);
    request.grammar = constraint_fields(fields);
    if (!request.grammar.empty() && !request.tools.empty() &&
        request.tool_choice != ToolChoice::none) {
        refuse_field(fields.param("tools"),
                     "cannot be combined with grammar, json_schema or response_format, unless "
                     "tool_choice is \"none\"");
    }
    return request;
}

ChatPrompt chat_prompt(const ChatFormat& format, const ChatRequest& request) {
    try {
        return format.prepare(request);
    } catch (const ToolsError& e) {
        throw RequestError(400, e.what(), "tools");
    } catch (const Error& e) {
        // Most say themselves which message it is.
        if (std::string_view(e.what()).starts_with("messages")) {
            throw RequestError(400, e.what(), "messages");
        }
        refuse_field("messages", e.what());
    }
}

int chat_logprobs_fields(const Fields& fields, const RequestLimits& limits) {
    const bool wanted = fields.boolean("logprobs", false);
    const auto top = fields.integer("top_logprobs", 0, limits.top_logprobs);
    if (top && !wanted) {
        refuse_field(fields.param("top_logprobs"), "is only allowed with logprobs");
    }
    return wanted ? static_cast<int>(top.value_or(0)) : -1;
}

}  // namespace pleat
