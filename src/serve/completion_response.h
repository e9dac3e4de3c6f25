#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "serve/answer.h"
#include "serve/generation_request.h"

namespace pleat {

/// llama-server's answer to /completion.
class CompletionResponse {
  public:
    /// `request` and `tokenizer` must outlive it.
    CompletionResponse(const GenerationRequest& request, const Tokenizer& tokenizer,
                       AnswerHead head)
        : request_(request), tokenizer_(tokenizer), head_(std::move(head)) {}

    /// The answer of one job, or, in a stream, its last event: then without what came before.
    nlohmann::ordered_json whole(size_t index, const JobRequest& job, const Answer& answer) const;
    /// An event of a stream; `told`: the tokens whose probabilities it tells.
    nlohmann::ordered_json part(size_t index, const JobRequest& job, const JobEvent& event,
                                const std::vector<TokenOutput>& told) const;

  private:
    const GenerationRequest& request_;
    const Tokenizer& tokenizer_;
    AnswerHead head_;
};

/// Of an object only these members; "a/b" is b of a, and keeps that name.
nlohmann::ordered_json selected_fields(const nlohmann::ordered_json& object,
                                       const std::vector<std::string>& names);

}  // namespace pleat
