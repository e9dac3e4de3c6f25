#include "chat/call_reader.h"

#include <algorithm>
#include <utility>

#include "chat/gemma4_call_reader.h"
#include "chat/json_call_reader.h"
#include "chat/qwen35_call_reader.h"

namespace pleat {

std::string CallReader::take_arguments() {
    return name_.empty() ? std::string() : std::exchange(arguments_, {});
}

bool CallReader::set_name(std::string name) {
    const auto& names = syntax_.tool_names;
    if (name.empty() || (!names.empty() && std::ranges::find(names, name) == names.end())) {
        return false;
    }
    name_ = std::move(name);
    return true;
}

std::vector<std::string> call_marks(ToolForm form) {
    switch (form) {
        case ToolForm::none:
            return {};
        case ToolForm::hermes:
            return {"<tool_call>"};
        case ToolForm::qwen35:
            return {"<tool_call>", "<function="};
        case ToolForm::llama3:
            return {"<|python_tag|>"};
        case ToolForm::gemma4:
            return {"<|tool_call>"};
    }
    return {};
}

std::unique_ptr<CallReader> make_call_reader(const ChatSyntax& syntax, std::string_view mark) {
    switch (syntax.tools) {
        case ToolForm::qwen35:
            return make_qwen35_call_reader(syntax, mark == "<function=");
        case ToolForm::gemma4:
            return make_gemma4_call_reader(syntax);
        case ToolForm::hermes:
            return make_json_call_reader(syntax, "</tool_call>");
        default:
            return make_json_call_reader(syntax, "");
    }
}

}  // namespace pleat
