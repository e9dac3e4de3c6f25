#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lab/probes.h"
#include "text/tokenizer.h"

namespace pleat {

/// A probe as tokens.
struct Question {
    const Probe* probe = nullptr;
    std::vector<int32_t> prompt = {};
    /// Tokens that prompt and answer take at most.
    size_t n_ctx() const { return prompt.size() + static_cast<size_t>(probe->max_new_tokens); }
};

/// Throws Error when a prompt does not fit into n_ctx_train tokens together with its answer, or a
/// chat probe meets a model without a template.
std::vector<Question> make_questions(const Tokenizer& tokenizer, std::span<const Probe> probes,
                                     uint32_t n_ctx_train);

/// What one plan writes to one question.
struct WrittenAnswer {
    std::vector<int32_t> tokens = {};
    TextEnd end = TextEnd::cut;

    /// Takes the next token. False when the answer is at its end: of a plain probe with its line,
    /// of a chat probe with the model's end of turn, of both at max_new_tokens.
    bool take(const Question& question, const Tokenizer& tokenizer, int32_t token);
};

}  // namespace pleat
