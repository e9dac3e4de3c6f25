#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/chat_format.h"
#include "engine/context.h"
#include "generate/generate.h"
#include "text/tokenizer.h"

namespace pleat {

struct ChatReply {
    Generated generated = {};    ///< its text is as drawn: marks of reasoning are part of it
    std::string content = {};    ///< as it went into the conversation
    std::string reasoning = {};  ///< likewise; empty when the model does not think
    size_t n_prompt = 0;         ///< tokens of the whole conversation before the answer
    size_t n_cached = 0;         ///< of these, those that did not have to be run
    /// False: the conversation is as before. The prompt did not fit (generated.reason is context),
    /// or was cancelled before any text came.
    bool kept = false;
};

/// What an answer tells its caller while it is made; both see all of it.
struct ChatHooks {
    std::function<void(std::string_view)> on_text{};
    std::function<void(const ChatDelta&)> on_delta{};
    std::function<bool()> cancelled{};
};

/// A conversation in one sequence of a context. Each turn renders all of it by the model's
/// template and runs only what differs from what the sequence holds. Nothing is ever forgotten by
/// itself: what does not fit is not said.
class ChatSession {
  public:
    /// The messages of OpenAI's API: {"role", "content", "reasoning_content"}.
    using Messages = nlohmann::ordered_json;

    /// Tokenizer and format must outlive it.
    ChatSession(const Tokenizer& tokenizer, const ChatFormat& format);

    /// The conversation goes on in this context, which runs it anew; null gives the memory of the
    /// last one back and leaves the session without.
    void set_context(std::unique_ptr<Context> context);
    Context& context() const { return *context_; }

    const Messages& messages() const { return messages_; }
    bool empty() const;  ///< but for a system message
    std::string system() const;
    /// Empty: none.
    void set_system(const std::string& text);
    /// Takes a conversation over. Throws Error, and changes nothing, when it is none or the
    /// template refuses it.
    void set_messages(Messages messages);
    /// The system message stays.
    void clear();
    /// Takes the last message of the user back, and what follows it; returns its text, or nothing
    /// when there is none.
    std::optional<std::string> undo();

    /// Answers a message of the user. Throws Error, and leaves the conversation as it was, when
    /// the template refuses it, and as Sampler and Context do.
    ChatReply ask(const std::string& text, const GenerationParams& params,
                  const ChatHooks& hooks = {});

    /// Tokens that the context holds now.
    size_t n_held() const { return held_.size(); }

  private:
    ChatPrompt prompt_of(const Messages& messages) const;
    size_t keep_common_prefix(const std::vector<int32_t>& prompt);
    void run(const ChatPrompt& prompt, const std::vector<int32_t>& tokens,
             const GenerationParams& params, const ChatHooks& hooks, ChatReply& reply);

    const Tokenizer& tokenizer_;
    const ChatFormat& format_;
    std::unique_ptr<Context> context_;
    Messages messages_ = Messages::array();
    std::vector<int32_t> held_;  ///< the tokens of sequence 0
};

}  // namespace pleat
