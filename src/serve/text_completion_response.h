#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "serve/answer.h"
#include "serve/generation_request.h"

namespace pleat {

/// OpenAI's answer to /v1/completions. Log probabilities come in OpenAI's form of that endpoint
/// (tokens, token_logprobs, top_logprobs, text_offset) and in llama-server's (content), side by
/// side.
class TextCompletionResponse {
  public:
    /// `request` and `tokenizer` must outlive it.
    TextCompletionResponse(const GenerationRequest& request, const Tokenizer& tokenizer,
                           AnswerHead head)
        : request_(request), tokenizer_(tokenizer), head_(std::move(head)) {}

    nlohmann::ordered_json whole(const std::vector<Answer>& answers) const;

    /// A chunk of a stream. `offset`: characters of the tokens before it; is moved on.
    nlohmann::ordered_json part(size_t index, const JobEvent& event, size_t& offset) const;
    /// The last chunk of a choice.
    nlohmann::ordered_json end(size_t index, const JobResult& result) const;
    /// The last chunk of all, for stream_options.include_usage.
    nlohmann::ordered_json usage(const std::vector<JobTimings>& timings) const;

  private:
    nlohmann::ordered_json frame(nlohmann::ordered_json choices) const;
    nlohmann::ordered_json logprobs(const std::vector<TokenOutput>& tokens, size_t& offset) const;

    const GenerationRequest& request_;
    const Tokenizer& tokenizer_;
    AnswerHead head_;
};

}  // namespace pleat
