#pragma once

#include "serve/request_fields.h"

namespace pleat {

enum class Endpoint : uint8_t {
    completion,       ///< llama-server's /completion
    text_completion,  ///< OpenAI's /v1/completions
    chat,             ///< OpenAI's /v1/chat/completions
};

/// Fields that OpenAI or llama-server know, that would change the answer, and that are not offered:
/// each is refused by its name unless it has its neutral value. Throws RequestError (400). What
/// does not change the answer (user, metadata, store ...) and what nobody knows is not looked at.
void check_refused_fields(const Fields& fields, Endpoint endpoint);

}  // namespace pleat
