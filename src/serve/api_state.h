#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "chat/chat_format.h"
#include "serve/answer.h"
#include "serve/api.h"
#include "serve/generation_request.h"
#include "serve/job_group.h"
#include "serve/prompt_tokenizer.h"
#include "serve/served_models.h"

namespace httplib {
struct Request;
struct Response;
}  // namespace httplib

namespace pleat {

/// What all endpoints answer from. Shared by all threads; only the count changes.
class ApiState {
  public:
    ApiState(Engine& engine, const Tokenizer& tokenizer, const ChatFormat& format,
             ApiSettings settings);

    Engine& engine;
    const Tokenizer& tokenizer;
    const ChatFormat& format;
    const ApiSettings settings;
    const ServedModels models;
    const PromptTokenizer prompt_tokenizer;
    const int64_t created;  ///< when the server began, in seconds since 1970

    RequestContext context() const;
    /// With a look at whether the client is still there.
    RequestContext context(const httplib::Request& request) const;
    AnswerHead head(size_t variant, std::string_view id_prefix) const;

    /// Throws as make_jobs() and JobGroup::submit() do, and when there is no such server slot.
    std::shared_ptr<JobGroup> submit(const GenerationRequest& request,
                                     const std::vector<std::vector<int32_t>>& prompts) const;

    /// Of jobs that have ended.
    void note_lengths(const JobGroup& group);
    uint64_t n_tokens_max() const { return n_tokens_max_.load(std::memory_order_relaxed); }

  private:
    std::atomic<uint64_t> n_tokens_max_ = 0;
};

void answer_json(httplib::Response& response, const nlohmann::ordered_json& value);

// Each takes the object of a request's body and answers it. All throw RequestError.

void answer_completion(ApiState& state, const Fields& fields, const httplib::Request& request,
                       httplib::Response& response);
void answer_text_completion(ApiState& state, const Fields& fields, const httplib::Request& request,
                            httplib::Response& response);
void answer_chat(ApiState& state, const Fields& fields, const httplib::Request& request,
                 httplib::Response& response);
void answer_template(ApiState& state, const Fields& fields, const httplib::Request& request,
                     httplib::Response& response);
void answer_openai_embeddings(ApiState& state, const Fields& fields,
                              const httplib::Request& request, httplib::Response& response);
void answer_embeddings(ApiState& state, const Fields& fields, const httplib::Request& request,
                       httplib::Response& response);

}  // namespace pleat
