#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace pleat {

/// The tokens of a raw prompt that the model is to continue, as stock's completion tool makes them:
/// names of control tokens are read as such, BOS comes first where the file asks for it, and an
/// empty text is BOS alone. No EOS follows, whatever the file says: there would be nothing to
/// continue. Throws Error when no token results.
std::vector<int32_t> prompt_tokens(const Tokenizer& tokenizer, std::string_view text);

/// The tokens of what a chat template made. A BOS that the template wrote itself is not doubled.
std::vector<int32_t> rendered_prompt_tokens(const Tokenizer& tokenizer, std::string_view text);

/// One turn of a chat: the model's template around a system message (none when empty) and what the
/// user says.
std::vector<int32_t> chat_prompt_tokens(const Tokenizer& tokenizer, const std::string& system,
                                        const std::string& user);
/// The same for any conversation.
std::vector<int32_t> chat_prompt_tokens(const Tokenizer& tokenizer, const ChatTemplate& chat,
                                        const std::vector<ChatMessage>& messages);

}  // namespace pleat
