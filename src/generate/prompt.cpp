#include "generate/prompt.h"

#include "base/error.h"

namespace pleat {

std::vector<int32_t> prompt_tokens(const Tokenizer& tokenizer, std::string_view text) {
    std::vector<int32_t> tokens = tokenizer.tokenize(text, true, true);
    if (tokenizer.add_eos() && !tokens.empty() && tokens.back() == tokenizer.eos()) {
        tokens.pop_back();
    }
    if (tokens.empty()) {
        fail("the prompt is empty, and {} has no BOS token to start from: give one with -p",
             tokenizer.path());
    }
    return tokens;
}

std::vector<int32_t> rendered_prompt_tokens(const Tokenizer& tokenizer, std::string_view text) {
    if (tokenizer.add_bos() && tokenizer.valid(tokenizer.bos())) {
        const std::string bos = tokenizer.piece(tokenizer.bos(), true);
        // Tokenising adds it again.
        if (!bos.empty() && text.starts_with(bos)) text.remove_prefix(bos.size());
    }
    return prompt_tokens(tokenizer, text);
}

std::vector<int32_t> chat_prompt_tokens(const Tokenizer& tokenizer, const ChatTemplate& chat,
                                        const std::vector<ChatMessage>& messages) {
    return rendered_prompt_tokens(tokenizer, chat.render(messages, true));
}

std::vector<int32_t> chat_prompt_tokens(const Tokenizer& tokenizer, const std::string& system,
                                        const std::string& user) {
    std::vector<ChatMessage> messages;
    if (!system.empty()) messages.push_back({.role = "system", .content = system});
    messages.push_back({.role = "user", .content = user});
    return chat_prompt_tokens(tokenizer, ChatTemplate::of(tokenizer), messages);
}

}  // namespace pleat
