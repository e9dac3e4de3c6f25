#include "generate/chat_session.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>

#include "base/error.h"
#include "generate/prompt.h"

namespace pleat {
namespace {

constexpr int32_t sequence = 0;

bool has_role(const ChatSession::Messages& message, std::string_view role) {
    return message.is_object() && message.value("role", "") == role;
}

}  // namespace

ChatSession::ChatSession(const Tokenizer& tokenizer, const ChatFormat& format)
    : tokenizer_(tokenizer), format_(format) {}

void ChatSession::set_context(std::unique_ptr<Context> context) {
    context_ = std::move(context);
    held_.clear();
}

bool ChatSession::empty() const {
    return messages_.empty() || (messages_.size() == 1 && has_role(messages_.front(), "system"));
}

std::string ChatSession::system() const {
    if (messages_.empty() || !has_role(messages_.front(), "system")) return {};
    const auto& content = messages_.front()["content"];
    return content.is_string() ? content.get<std::string>() : content.dump();
}

void ChatSession::set_system(const std::string& text) {
    Messages changed = Messages::array();
    if (!text.empty()) changed.push_back({{"role", "system"}, {"content", text}});
    for (const auto& message : messages_) {
        if (&message == &messages_.front() && has_role(message, "system")) continue;
        changed.push_back(message);
    }
    messages_ = std::move(changed);
}

void ChatSession::set_messages(Messages messages) {
    if (!messages.is_array()) fail("a conversation is a list of messages");
    for (const auto& message : messages) {
        if (!message.is_object() || !message.contains("role") || !message["role"].is_string()) {
            fail("each message of a conversation is an object with a \"role\"");
        }
    }
    if (!messages.empty()) prompt_of(messages);
    messages_ = std::move(messages);
}

void ChatSession::clear() {
    const std::string kept = system();
    messages_.clear();
    set_system(kept);
}

std::optional<std::string> ChatSession::undo() {
    for (size_t i = messages_.size(); i-- > 0;) {
        if (!has_role(messages_[i], "user")) continue;
        const auto content = messages_[i].value("content", Messages());
        messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(i), messages_.end());
        return content.is_string() ? content.get<std::string>() : content.dump();
    }
    return std::nullopt;
}

ChatPrompt ChatSession::prompt_of(const Messages& messages) const {
    return format_.prepare({.messages = messages});
}

/// Cuts the sequence back to what it has in common with the prompt, of which one token at least is
/// left to run: there are no logits otherwise.
size_t ChatSession::keep_common_prefix(const std::vector<int32_t>& prompt) {
    const auto [held, same] = std::ranges::mismatch(held_, prompt);
    const auto n_same = static_cast<size_t>(held - held_.begin());
    const size_t n_kept = std::min(n_same, prompt.size() - 1);
    if (n_kept == held_.size()) return n_kept;
    try {
        context_->remove(sequence, static_cast<int32_t>(n_kept));
        held_.resize(n_kept);
    } catch (const Error&) {  // a recurrent state or a window that moved on cannot be cut back
        context_->remove(sequence);
        held_.clear();
    }
    return held_.size();
}

void ChatSession::run(const ChatPrompt& prompt, const std::vector<int32_t>& tokens,
                      const GenerationParams& params, const ChatHooks& hooks, ChatReply& reply) {
    GenerationParams all = params;
    all.stops.insert(all.stops.end(), prompt.stops.begin(), prompt.stops.end());
    all.special = params.special || prompt.special;
    ChatParser parser(prompt.syntax, 0);
    const auto take = [&](const ChatDelta& delta) {
        reply.content += delta.content;
        reply.reasoning += delta.reasoning;
        if (hooks.on_delta && !delta.empty()) hooks.on_delta(delta);
    };
    reply.n_cached = keep_common_prefix(tokens);
    reply.generated = resume(*context_, tokenizer_, tokens, all,
                             {.on_text =
                                  [&](std::string_view text) {
                                      if (hooks.on_text) hooks.on_text(text);
                                      take(parser.feed(text));
                                  },
                              .cancelled = hooks.cancelled},
                             sequence);
    take(parser.finish());
    // The last token drawn was not run, and of a prompt that was cancelled there is less.
    held_ = tokens;
    held_.insert(held_.end(), reply.generated.tokens.begin(), reply.generated.tokens.end());
    held_.resize(static_cast<size_t>(context_->next_position(sequence)));
}

ChatReply ChatSession::ask(const std::string& text, const GenerationParams& params,
                           const ChatHooks& hooks) {
    assert(context_);
    Messages asked = messages_;
    asked.push_back({{"role", "user"}, {"content", text}});
    const ChatPrompt prompt = prompt_of(asked);
    const std::vector<int32_t> tokens = rendered_prompt_tokens(tokenizer_, prompt.text);
    ChatReply reply{.n_prompt = tokens.size()};
    // The answer needs room for one token.
    if (tokens.size() >= context_->settings().cache.n_cells()) {
        reply.generated.reason = FinishReason::context;
        return reply;
    }
    try {
        run(prompt, tokens, params, hooks, reply);
    } catch (...) {  // what the sequence holds is not known
        context_->remove(sequence);
        held_.clear();
        throw;
    }
    reply.kept = reply.generated.reason != FinishReason::cancelled || !reply.generated.text.empty();
    if (!reply.kept) return reply;
    Messages answer{{"role", "assistant"}, {"content", reply.content}};
    if (!reply.reasoning.empty()) answer["reasoning_content"] = reply.reasoning;
    asked.push_back(std::move(answer));
    messages_ = std::move(asked);
    return reply;
}

}  // namespace pleat
