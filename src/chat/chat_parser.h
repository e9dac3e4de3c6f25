#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pleat {

/// How tool calls are written.
enum class ToolForm : uint8_t {
    none,
    hermes,   ///< <tool_call>{"name": ..., "arguments": {...}}</tool_call>: Qwen2.5, Qwen3
    qwen35,   ///< <tool_call><function=name><parameter=key>value</parameter></function></tool_call>
    llama3,   ///< {"name": ..., "parameters": {...}}, alone
    gemma4,
};

/// The texts around reasoning; empty: the model does not think.
struct ReasoningMarks {
    std::string open = {};   ///< "<think>"
    std::string close = {};  ///< "</think>"
};

/// What a parser has to know of one prompt.
struct ChatSyntax {
    ToolForm tools = ToolForm::none;  ///< none: nothing is read as a call
    ReasoningMarks reasoning = {};    ///< empty marks: nothing is split out
    bool reasoning_open = false;      ///< the prompt itself opened the reasoning
    /// Types of the tools' parameters, for forms that write values without them:
    /// (tool, parameter) whose values are texts and not JSON.
    std::vector<std::pair<std::string, std::string>> text_parameters = {};
};

struct ToolCallDelta {
    size_t index = 0;
    std::string id = {};         ///< in the first delta of a call, as `name`
    std::string name = {};
    std::string arguments = {};  ///< the next part of a JSON text
};

struct ChatDelta {
    std::string content = {};
    std::string reasoning = {};
    std::vector<ToolCallDelta> calls = {};
    bool empty() const { return content.empty() && reasoning.empty() && calls.empty(); }
};

/// Reads a model's text as it comes and splits it into content, reasoning and tool calls. How the
/// text is cut plays no part. What looks like a call and is none (bad JSON, an unknown form) is
/// content: nothing is lost. Never throws on any text.
class ChatParser {
  public:
    /// `id_seed` makes the ids of calls; equal seeds give equal ids.
    ChatParser(ChatSyntax syntax, uint64_t id_seed);
    ~ChatParser();
    ChatParser(ChatParser&&) noexcept;

    ChatDelta feed(std::string_view text);
    ChatDelta finish();

    size_t n_calls() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace pleat
