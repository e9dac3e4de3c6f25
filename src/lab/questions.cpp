#include "lab/questions.h"

#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "generate/prompt.h"
#include "text/chat_template.h"

namespace pleat {
namespace {

/// A line with something on it has come to its end.
bool line_ended(std::string_view text) {
    const size_t begin = text.find_first_not_of(" \t\r\n");
    return begin != std::string_view::npos && text.find('\n', begin) != std::string_view::npos;
}

}  // namespace

std::vector<Question> make_questions(const Tokenizer& tokenizer, std::span<const Probe> probes,
                                     uint32_t n_ctx_train) {
    std::optional<ChatTemplate> chat;
    std::vector<Question> questions;
    for (const Probe& probe : probes) {
        Question question{.probe = &probe};
        if (!probe.is_chat()) {
            question.prompt = prompt_tokens(tokenizer, probe.prompt);
        } else {
            if (!chat) chat.emplace(ChatTemplate::of(tokenizer));
            question.prompt = chat_prompt_tokens(tokenizer, *chat, probe.messages);
        }
        if (question.n_ctx() > n_ctx_train) {
            fail("probe {}: {} tokens of prompt and {} of answer do not fit into the model's {}",
                 probe.id, question.prompt.size(), probe.max_new_tokens, n_ctx_train);
        }
        questions.push_back(std::move(question));
    }
    return questions;
}

bool WrittenAnswer::take(const Question& question, const Tokenizer& tokenizer, int32_t token) {
    const Probe& probe = *question.probe;
    if (tokenizer.is_eog(token)) {
        end = TextEnd::complete;
        return false;
    }
    tokens.push_back(token);
    if (!probe.is_chat() && line_ended(tokenizer.detokenize(tokens, false))) {
        end = TextEnd::complete;
        return false;
    }
    return tokens.size() < static_cast<size_t>(probe.max_new_tokens);
}

}  // namespace pleat
