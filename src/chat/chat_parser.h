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
    hermes,  ///< <tool_call>{"name": ..., "arguments": {...}}</tool_call>: Qwen2.5, Qwen3
    qwen35,  ///< <tool_call><function=name><parameter=key>value</parameter></function></tool_call>
    llama3,  ///< {"name": ..., "parameters": {...}}, alone or after <|python_tag|>
    gemma4,  ///< <|tool_call>call:name{key:value}<tool_call|>, texts between <|"|> marks
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
    /// The tools there are: a call of another is content. Empty: any name will do.
    std::vector<std::string> tool_names = {};
    /// Types of the tools' parameters, for forms that write values without them:
    /// (tool, parameter) whose values are texts and not JSON.
    std::vector<std::pair<std::string, std::string>> text_parameters = {};
    /// What was told of a call that breaks off is taken back and its text told as content, as a
    /// stream cannot: there it stays told, and only what follows is content.
    bool takes_back = true;
};

struct ToolCallDelta {
    size_t index = 0;
    std::string id = {};  ///< in the first delta of a call, as `name`
    std::string name = {};
    std::string arguments = {};  ///< the next part of a JSON text
};

struct ChatDelta {
    std::string content = {};
    std::string reasoning = {};
    std::vector<ToolCallDelta> calls = {};
    /// Calls that broke off, by index: the text ended, or went on as no call can. What earlier
    /// deltas told of them is void; their text has become content, unless ChatSyntax::takes_back is
    /// false. Indices are not used again.
    std::vector<size_t> broken_calls = {};
    bool empty() const {
        return content.empty() && reasoning.empty() && calls.empty() && broken_calls.empty();
    }
};

struct ToolCall {
    std::string id;
    std::string name;
    std::string arguments;  ///< a JSON object
    bool operator==(const ToolCall&) const = default;
};

/// The whole of an answer, put together from its deltas.
struct ChatAnswer {
    std::string content = {};
    std::string reasoning = {};
    std::vector<ToolCall> calls = {};
    bool operator==(const ChatAnswer&) const = default;
};

/// Reads a model's text as it comes and splits it into content, reasoning and tool calls. How the
/// text is cut plays no part in the sum of the deltas. Arguments come while they are written, as
/// parts of valid JSON. What looks like a call and is none (bad JSON, an unknown tool, the end of
/// the text in the middle) is content: nothing is lost but white space next to calls and to
/// reasoning. Bytes that are no UTF-8 become U+FFFD. Never throws on any text.
class ChatParser {
  public:
    /// `id_seed` makes the ids of calls; equal seeds give equal ids.
    ChatParser(ChatSyntax syntax, uint64_t id_seed);
    ~ChatParser();
    ChatParser(ChatParser&&) noexcept;

    ChatDelta feed(std::string_view text);
    /// The text has ended.
    ChatDelta finish();

    /// Whole calls so far.
    size_t n_calls() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// All at once.
ChatAnswer parse_answer(const ChatSyntax& syntax, uint64_t id_seed, std::string_view text);

/// Adds up deltas, for answers that are not streamed.
class ChatAnswerBuilder {
  public:
    void add(const ChatDelta& delta);
    ChatAnswer answer() const;

  private:
    struct Call {
        size_t index;
        ToolCall call;
    };
    ChatAnswer answer_;
    std::vector<Call> calls_;
};

}  // namespace pleat
