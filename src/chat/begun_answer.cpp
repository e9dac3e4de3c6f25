#include "chat/begun_answer.h"

#include "base/error.h"
#include "chat/chat_messages.h"

namespace pleat {
namespace {

using Json = nlohmann::ordered_json;

bool is_assistant(const Json& message) {
    return message.is_object() && message.value("role", Json()) == "assistant";
}

/// What models write between the marks and around them.
struct MarkSpace {
    std::string_view inside;
    std::string_view behind;
};

MarkSpace space_of(const ReasoningMarks& marks) {
    if (marks.open == "<think>") return {"\n", "\n\n"};
    return {marks.open.starts_with('<') ? "\n" : "", ""};
}

}  // namespace

std::optional<BegunAnswer> take_begun_answer(Json& messages) {
    if (!messages.is_array() || messages.empty() || !is_assistant(messages.back())) return {};
    const std::string where = fmt::format("messages[{}]", messages.size() - 1);
    const Json last = messages.back();
    if (messages.size() > 1 && is_assistant(messages[messages.size() - 2])) {
        fail("{}: two assistant messages at the end cannot be continued", where);
    }
    const Json calls = last.value("tool_calls", Json());
    if (!calls.is_null() && calls != Json::array()) {
        fail("{}: an assistant message with tool calls cannot be continued", where);
    }
    const Json reasoning = last.value("reasoning_content", Json());
    if (!reasoning.is_null() && !reasoning.is_string()) {
        fail("{}.reasoning_content: must be a text", where);
    }
    messages.erase(messages.size() - 1);
    return BegunAnswer{
        .reasoning = reasoning.is_string() ? reasoning.get<std::string>() : std::string(),
        .content = content_text(last.value("content", Json()), where + ".content")};
}

Thinking append_answer(std::string& prompt, const BegunAnswer& answer, const ReasoningMarks& marks,
                       Thinking thinking) {
    const MarkSpace space = space_of(marks);
    if (thinking == Thinking::not_begun && !marks.open.empty() && !answer.reasoning.empty()) {
        prompt.append(marks.open).append(space.inside);
        thinking = Thinking::open;
    }
    const bool open = thinking == Thinking::open;
    if (open) prompt += answer.reasoning;
    if (answer.content.empty()) return thinking;
    // Where reasoning is told as content, this may bring its own end.
    if (open && answer.content.find(marks.close) == std::string::npos) {
        prompt.append(space.inside).append(marks.close).append(space.behind);
    }
    prompt += answer.content;
    return Thinking::done;
}

}  // namespace pleat
