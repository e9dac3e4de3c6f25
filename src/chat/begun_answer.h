#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "chat/chat_parser.h"

namespace pleat {

/// What the assistant has already said of the answer that is asked for.
struct BegunAnswer {
    std::string reasoning = {};
    std::string content = {};
};

/// Takes the last message out of OpenAI's `messages` when it is the assistant's. Throws Error when
/// it cannot be gone on with: it calls tools, or the one before is the assistant's, too.
std::optional<BegunAnswer> take_begun_answer(nlohmann::ordered_json& messages);

/// Where a text of the assistant's leaves its reasoning.
enum class Thinking : uint8_t { not_begun, open, done };

/// Appends it to a prompt that ends where the assistant begins to speak; the reasoning ends where
/// there is content. `thinking` is the prompt's own; returns what it is behind the answer.
Thinking append_answer(std::string& prompt, const BegunAnswer& answer, const ReasoningMarks& marks,
                       Thinking thinking);

}  // namespace pleat
