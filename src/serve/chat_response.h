#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "chat/chat_parser.h"
#include "serve/answer.h"
#include "serve/generation_request.h"

namespace pleat {

/// OpenAI's answer to /v1/chat/completions, with llama-server's reasoning_content and timings.
class ChatResponse {
  public:
    /// `request` and `tokenizer` must outlive it. `special` as in GenerationParams.
    ChatResponse(const GenerationRequest& request, const Tokenizer& tokenizer, AnswerHead head)
        : request_(request), tokenizer_(tokenizer), head_(std::move(head)) {}

    /// `parsed[i]` is what answers[i].text says.
    nlohmann::ordered_json whole(const std::vector<Answer>& answers,
                                 const std::vector<ChatAnswer>& parsed) const;

    /// Chunks of a stream: the first of a choice, what came, the last of a choice.
    nlohmann::ordered_json begin(size_t index) const;
    nlohmann::ordered_json part(size_t index, const ChatDelta& delta,
                                const std::vector<TokenOutput>& tokens,
                                const JobTimings& timings) const;
    nlohmann::ordered_json end(size_t index, const JobResult& result, bool calls) const;
    /// The last chunk of all, for stream_options.include_usage.
    nlohmann::ordered_json usage(const std::vector<JobTimings>& timings) const;

    bool with_logprobs() const { return request_.n_probs >= 0; }

  private:
    nlohmann::ordered_json frame(std::string_view object, nlohmann::ordered_json choices) const;
    nlohmann::ordered_json chunk(size_t index, nlohmann::ordered_json delta,
                                 nlohmann::ordered_json finish_reason) const;
    nlohmann::ordered_json logprobs(const std::vector<TokenOutput>& tokens) const;

    const GenerationRequest& request_;
    const Tokenizer& tokenizer_;
    AnswerHead head_;
};

}  // namespace pleat
