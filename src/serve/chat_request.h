#pragma once

#include "chat/chat_format.h"
#include "serve/generation_request.h"
#include "serve/request_fields.h"

namespace pleat {

/// What a conversation is read against, beside RequestContext.
struct ChatDefaults {
    ReasoningFormat reasoning = ReasoningFormat::separate;
    bool continue_answers = true;
    nlohmann::ordered_json template_arguments = nlohmann::ordered_json::object();
};

/// The part of /v1/chat/completions that becomes the prompt, also of /apply-template: messages,
/// tools, tool_choice, chat_template_kwargs, reasoning_format ... Throws RequestError that names
/// the field.
ChatRequest chat_fields(const Fields& fields, const ChatDefaults& defaults,
                        const RequestLimits& limits);

/// What the model is given for it. Throws RequestError: of the messages or of the tools.
ChatPrompt chat_prompt(const ChatFormat& format, const ChatRequest& request);

/// logprobs (a boolean) and top_logprobs, as OpenAI's chat has them; -1: none are asked for.
int chat_logprobs_fields(const Fields& fields, const RequestLimits& limits);

}  // namespace pleat
