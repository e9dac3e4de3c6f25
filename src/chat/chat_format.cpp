#include "chat/chat_format.h"

#include <algorithm>

#include "base/error.h"
#include "chat/begun_answer.h"
#include "chat/call_grammar.h"
#include "chat/call_reader.h"
#include "chat/described_tools.h"
#include "chat/template_traits.h"

namespace pleat {
namespace {

/// The commonest conversation format, for files that bring none.
constexpr std::string_view chatml =
    "{%- for message in messages -%}"
    "{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}";
constexpr std::string_view chatml_end = "<|im_end|>";

/// A text that is one token which does not show in plain text.
bool is_control(const Tokenizer& tokenizer, const std::string& text) {
    if (text.empty()) return false;
    const auto tokens = tokenizer.tokenize(text, false, true);
    return tokens.size() == 1 && tokenizer.piece(tokens[0], false).empty();
}

std::string token_text(const Tokenizer& tokenizer, int32_t token) {
    return tokenizer.valid(token) ? tokenizer.piece(token, true) : std::string();
}

ChatTemplate make_template(const Tokenizer& tokenizer, const std::string& text) {
    return {text, token_text(tokenizer, tokenizer.bos()), token_text(tokenizer, tokenizer.eos())};
}

std::string_view trimmed(std::string_view text) {
    const size_t end = text.find_last_not_of(" \t\n\r");
    return end == std::string_view::npos ? std::string_view() : text.substr(0, end + 1);
}

Thinking thinking_at_end(std::string_view prompt, const ReasoningMarks& marks) {
    if (marks.close.empty()) return Thinking::not_begun;
    const std::string_view end = trimmed(prompt);
    if (end.ends_with(marks.open)) return Thinking::open;
    return end.ends_with(marks.close) ? Thinking::done : Thinking::not_begun;
}

template <typename Work>
auto of_tools(Work work) {
    try {
        return work();
    } catch (const Error& e) {
        throw ToolsError(e.what());
    }
}

}  // namespace

ChatFormat::ChatFormat(const Tokenizer& tokenizer, const std::string& template_text) {
    const std::string& text = template_text.empty() ? tokenizer.chat_template() : template_text;
    try {
        use(std::make_shared<ChatTemplate>(make_template(tokenizer, text)), text);
    } catch (const Error& e) {
        if (!template_text.empty()) throw;
        warnings_.push_back(
            text.empty() ? "the file has no chat template; ChatML is used"
                         : fmt::format("the file's {}; ChatML is used in its place", e.what()));
        const std::string fallback(chatml);
        use(std::make_shared<ChatTemplate>(make_template(tokenizer, fallback)), fallback);
        const auto end = tokenizer.tokenize(chatml_end, false, true);
        if (end.size() != 1 || !tokenizer.is_eog(end[0])) stops_.emplace_back(chatml_end);
    }
    for (const std::string& missing : template_->missing()) {
        warnings_.push_back(
            fmt::format("chat template, {}: conversations that need it are refused", missing));
    }
    if (tool_form_ == ToolForm::none) {
        warnings_.emplace_back(
            "the chat template knows no tool calls; where a request has tools, the system message "
            "describes them");
    }
    for (const std::string& mark : call_marks(form_in_use())) {
        special_marks_ = special_marks_ || is_control(tokenizer, mark);
    }
    special_marks_ = special_marks_ || is_control(tokenizer, reasoning_.close) ||
                     is_control(tokenizer, reasoning_.open);
    for (const int32_t token : tokenizer.eog_tokens()) {
        const std::string end = tokenizer.piece(token, true);
        if (!end.empty()) ends_.push_back(end);
    }
}

void ChatFormat::use(std::shared_ptr<const ChatTemplate> chat, std::string text) {
    const TemplateTraits traits = traits_of(*chat, text);
    template_ = std::move(chat);
    template_text_ = std::move(text);
    tool_form_ = traits.tools;
    reasoning_ = traits.reasoning;
    needs_ = traits.needs;
}

std::string_view ChatFormat::tool_form() const {
    switch (tool_form_) {
        case ToolForm::none:
            return "generic";
        case ToolForm::hermes:
            return "hermes";
        case ToolForm::qwen35:
            return "qwen3.5";
        case ToolForm::llama3:
            return "llama3";
        case ToolForm::gemma4:
            return "gemma4";
    }
    fail("unknown form of tool calls {}", static_cast<int>(tool_form_));
}

ChatPrompt ChatFormat::prepare(const ChatRequest& request) const {
    if (!request.messages.is_array() || request.messages.empty()) {
        fail("messages: must be a list of at least one");
    }
    if (!request.template_arguments.is_object()) fail("chat_template_kwargs: must be an object");
    std::vector<Tool> tools;
    if (request.tool_choice != ToolChoice::none) {
        tools = of_tools([&] { return read_tools(request.tools); });
    }
    if (!tools.empty() && !request.grammar.empty()) {
        fail("a grammar or response_format cannot be combined with tools");
    }
    nlohmann::ordered_json messages = request.messages;
    std::optional<BegunAnswer> begun;
    if (request.continue_answer) begun = take_begun_answer(messages);
    const bool described = tool_form_ == ToolForm::none;
    const TemplateInputs inputs{
        .messages =
            template_messages(described ? described_tools(messages, tools) : messages, needs_),
        .tools =
            tools.empty() || described ? nlohmann::ordered_json() : template_tools(request.tools),
        .tools_defined = needs_.tools_defined || (!tools.empty() && !described),
        .arguments = request.template_arguments,
        .add_generation_prompt = request.add_generation_prompt || begun};
    ChatPrompt prompt{.text = template_->render(inputs), .stops = stops_};
    const bool separate = request.reasoning == ReasoningFormat::separate;
    if (separate) prompt.syntax.reasoning = reasoning_;
    if (!tools.empty()) {
        prompt.syntax.tools = form_in_use();
        prompt.syntax.text_parameters = text_parameters(tools);
        for (const Tool& tool : tools) prompt.syntax.tool_names.push_back(tool.name);
    }
    prompt.special = special_marks_ && (!tools.empty() || separate);
    // Shown control tokens include the one that ends the turn.
    if (prompt.special) prompt.stops.insert(prompt.stops.end(), ends_.begin(), ends_.end());

    const bool thinks = !reasoning_.close.empty() && inputs.add_generation_prompt;
    Thinking thinking = thinks ? thinking_at_end(prompt.text, reasoning_) : Thinking::not_begun;
    if (begun) thinking = append_answer(prompt.text, *begun, reasoning_, thinking);
    const bool open = thinking == Thinking::open;
    prompt.syntax.reasoning_open = separate && open;
    prompt.constraint = tools.empty() ? GrammarConstraint{.text = request.grammar}
                                      : of_tools([&] { return calls_of(request, tools); });
    // A prompt that closes the reasoning has done with it. Where nobody takes it out of the answer,
    // it comes only when the prompt itself begins it.
    const bool may_reason = thinks && separate && thinking != Thinking::done;
    if (!prompt.constraint.text.empty() && (open || may_reason)) {
        const bool may_end =
            prompt.syntax.tools != ToolForm::none && request.tool_choice == ToolChoice::automatic;
        prompt.constraint = after_reasoning(prompt.constraint, reasoning_, open, may_end);
    }
    return prompt;
}

GrammarConstraint ChatFormat::calls_of(const ChatRequest& request, std::vector<Tool> tools) const {
    if (request.tool_choice == ToolChoice::named) {
        std::erase_if(tools, [&](const Tool& tool) { return tool.name != request.tool_name; });
        if (tools.empty()) fail("tool_choice: there is no tool named {}", request.tool_name);
    }
    return call_constraint({.form = form_in_use(),
                            .tools = std::move(tools),
                            .parallel = request.parallel_tool_calls,
                            .optional = request.tool_choice == ToolChoice::automatic});
}

}  // namespace pleat
