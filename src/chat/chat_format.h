#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "chat/chat_messages.h"
#include "chat/chat_parser.h"
#include "chat/tools.h"
#include "text/chat_template.h"
#include "text/sampling_params.h"
#include "text/tokenizer.h"

namespace pleat {

enum class ToolChoice : uint8_t { none, automatic, required, named };

/// How a model's text is to be read, and where reasoning goes (llama-server's --reasoning-format).
enum class ReasoningFormat : uint8_t {
    none,      ///< stays in the content, marks and all
    separate,  ///< becomes reasoning_content ("deepseek", "auto")
};

/// What a client asks to be made into a prompt: OpenAI's fields, already checked for their types.
struct ChatRequest {
    /// [{role, content, ...}], as in OpenAI's API: content a text, null, or a list of text parts;
    /// assistant messages may have tool_calls and reasoning_content, tool messages tool_call_id.
    nlohmann::ordered_json messages;
    nlohmann::ordered_json tools = nlohmann::ordered_json::array();  ///< [{type, function: {...}}]
    ToolChoice tool_choice = ToolChoice::automatic;
    std::string tool_name = {};  ///< for `named`
    bool parallel_tool_calls = false;
    /// Further variables of the template (chat_template_kwargs), such as enable_thinking.
    nlohmann::ordered_json template_arguments = nlohmann::ordered_json::object();
    bool add_generation_prompt = true;
    /// A last message of the assistant's is its answer's beginning, which is gone on with.
    bool continue_answer = true;
    ReasoningFormat reasoning = ReasoningFormat::separate;
    /// A constraint on the answer: GBNF; empty: none. Not together with tools that may be called.
    std::string grammar = {};
};

/// A prompt and how to generate and read what follows it.
struct ChatPrompt {
    std::string text;
    GrammarConstraint constraint = {};  ///< for SamplingParams
    std::vector<std::string> stops = {};
    bool special = false;  ///< the format's marks are control tokens, so they must show as text
    ChatSyntax syntax = {};
};

/// The conversation format of a model file: its template, which forms of tool calls and of
/// reasoning it uses (read off the template's text), what of it minja cannot run. Immutable, usable
/// from any thread.
class ChatFormat {
  public:
    /// `template_text` empty: the file's own. A file without a template, or with one that cannot
    /// be run, gets the fallback (ChatML), which warnings() say. Throws Error only when
    /// `template_text` is given and cannot be run.
    explicit ChatFormat(const Tokenizer& tokenizer, const std::string& template_text = {});

    /// Throws Error, one line, when the messages are malformed or refused by the template, and
    /// ToolsError when tools are malformed or a schema is not supported. Reasoning may come before
    /// calls that must be made and before a constrained answer. With tool_choice `none` the
    /// template sees no tools.
    ChatPrompt prepare(const ChatRequest& request) const;

    const std::string& template_text() const { return template_text_; }  ///< in use
    const std::vector<std::string>& warnings() const { return warnings_; }
    /// "hermes", "qwen3.5", "llama3", "gemma4"; "generic": the template has none, so that the
    /// system message describes the tools and Hermes' form.
    std::string_view tool_form() const;

  private:
    ToolForm form_in_use() const {
        return tool_form_ == ToolForm::none ? ToolForm::hermes : tool_form_;
    }
    void use(std::shared_ptr<const ChatTemplate> chat, std::string text);
    GrammarConstraint calls_of(const ChatRequest& request, std::vector<Tool> tools) const;

    std::string template_text_;
    std::vector<std::string> warnings_;
    std::shared_ptr<const ChatTemplate> template_;
    TemplateNeeds needs_ = {};
    ToolForm tool_form_ = ToolForm::none;
    ReasoningMarks reasoning_ = {};
    bool special_marks_ = false;      ///< marks are control tokens of the vocabulary
    std::vector<std::string> stops_;  ///< ends of turns that the vocabulary does not mark as such
    std::vector<std::string> ends_;   ///< its end tokens' texts
};

}  // namespace pleat
