#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace pleat {

struct ChatMessage {
    std::string role;  ///< what the template knows: mostly "system", "user", "assistant"
    std::string content;
    bool operator==(const ChatMessage&) const = default;
};

/// The variables that a template sees.
struct TemplateInputs {
    nlohmann::ordered_json messages = nlohmann::ordered_json::array();
    nlohmann::ordered_json tools = nullptr;
    bool tools_defined = true;  ///< else the template knows no variable of that name
    /// Further variables by name, such as enable_thinking; they stand above bos_token and the rest.
    nlohmann::ordered_json arguments = nlohmann::ordered_json::object();
    bool add_generation_prompt = true;
};

/// The Jinja template of a model file, which turns a conversation into a prompt. The text comes
/// with the model, so it is treated as a stranger's program: size, nesting, recursion, work and
/// output are bounded. Immutable, usable from any thread.
class ChatTemplate {
  public:
    /// `bos` and `eos` are the texts that the template sees as bos_token and eos_token. Throws
    /// Error when the text is empty, does not parse or is refused.
    ChatTemplate(const std::string& text, std::string bos, std::string eos);
    /// With the tokens of the vocabulary. Throws Error also when the file has no template.
    static ChatTemplate of(const Tokenizer& tokenizer);

    ~ChatTemplate();
    ChatTemplate(ChatTemplate&&) noexcept;
    ChatTemplate& operator=(ChatTemplate&&) noexcept;

    /// The prompt. With `add_generation_prompt` it ends where the assistant begins to speak.
    /// Templates put bos_token into it themselves: tokenize it without add_special when it begins
    /// with that text. Throws Error, one line, when the template raises one or does not end.
    std::string render(const TemplateInputs& inputs) const;
    std::string render(const std::vector<ChatMessage>& messages, bool add_generation_prompt) const;

    /// What the text calls and is not there, each with its line: a conversation that reaches it
    /// cannot be rendered.
    const std::vector<std::string>& missing() const;

    const std::string& bos() const { return bos_; }
    const std::string& eos() const { return eos_; }

  private:
    struct Program;

    std::unique_ptr<const Program> program_;
    std::string bos_;
    std::string eos_;
};

}  // namespace pleat
