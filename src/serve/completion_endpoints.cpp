// /completion and /v1/completions.
#include <httplib.h>

#include <utility>

#include "serve/api_state.h"
#include "serve/completion_response.h"
#include "serve/constraint_fields.h"
#include "serve/endpoint_stream.h"
#include "serve/prompt_field.h"
#include "serve/refused_fields.h"
#include "serve/shown_tokens.h"
#include "serve/text_completion_response.h"

namespace pleat {
namespace {

using nlohmann::ordered_json;

struct Completion {
    GenerationRequest request;
    std::vector<std::vector<int32_t>> prompts;
    bool several = false;  ///< llama-server then answers with a list
};

Completion read_completion(const ApiState& state, const Fields& fields,
                           const httplib::Request& http, Endpoint endpoint) {
    check_refused_fields(fields, endpoint);
    const RequestContext context = state.context(http);
    Completion completion{.request = generation_request(fields, context), .prompts = {}};
    const std::string grammar = constraint_fields(fields);
    check_constraint(fields, grammar, state.tokenizer);
    completion.request.generation.sampling.constraint.text = grammar;
    // OpenAI's number: 0 is the drawn token's alone.
    const auto logprobs = fields.integer("logprobs", 0, context.limits.top_logprobs);
    if (logprobs && completion.request.n_probs < 0) {
        const bool wanted = endpoint == Endpoint::text_completion || *logprobs > 0;
        completion.request.n_probs = wanted ? static_cast<int>(*logprobs) : -1;
    }
    const ordered_json* const prompt = fields.find("prompt");
    if (prompt == nullptr) refuse_field(fields.param("prompt"), "is missing");
    completion.prompts = prompt_field(*prompt, fields.param("prompt"), context.prompts,
                                      context.gone, context.limits);
    completion.several = has_several_prompts(*prompt) || completion.request.n > 1;
    return completion;
}

/// The stream of /completion: every event of a job becomes one, the last two.
class CompletionStream {
  public:
    CompletionStream(GenerationRequest request, const Tokenizer& tokenizer, AnswerHead head,
                     size_t n_jobs)
        : request_(std::move(request)),
          response_(request_, tokenizer, std::move(head)),
          texts_(n_jobs),
          told_(n_jobs, ShownTokens(tokenizer, request_.generation.special)) {}
    CompletionStream(const CompletionStream&) = delete;
    CompletionStream& operator=(const CompletionStream&) = delete;

    std::string event(const JobGroup::Event& it, const Job& job) {
        std::string text;
        texts_[it.index] += it.event.text;
        if (!it.event.text.empty() || !it.event.tokens.empty()) {
            const auto told = told_[it.index].take(it.event.text, it.event.tokens);
            text = event_text(response_.part(it.index, job.request(), it.event, told));
        }
        if (it.event.last) {
            const Answer answer{.text = texts_[it.index], .result = job.result()};
            text += event_text(response_.whole(it.index, job.request(), answer));
        }
        return text;
    }

    std::string end(const std::vector<JobTimings>&) const { return {}; }

  private:
    const GenerationRequest request_;
    const CompletionResponse response_;
    std::vector<std::string> texts_;
    std::vector<ShownTokens> told_;
};

/// The stream of /v1/completions.
class TextCompletionStream {
  public:
    TextCompletionStream(GenerationRequest request, const Tokenizer& tokenizer, AnswerHead head,
                         size_t n_jobs)
        : request_(std::move(request)),
          response_(request_, tokenizer, std::move(head)),
          offsets_(n_jobs),
          told_(n_jobs, ShownTokens(tokenizer, request_.generation.special)) {}
    TextCompletionStream(const TextCompletionStream&) = delete;
    TextCompletionStream& operator=(const TextCompletionStream&) = delete;

    std::string event(const JobGroup::Event& it, const Job& job) {
        std::string text;
        JobEvent part{.text = it.event.text, .timings = it.event.timings};
        if (request_.n_probs >= 0) part.tokens = told_[it.index].take(part.text, it.event.tokens);
        if (!part.text.empty() || !part.tokens.empty()) {
            text = event_text(response_.part(it.index, part, offsets_[it.index]));
        }
        if (it.event.last) text += event_text(response_.end(it.index, job.result()));
        return text;
    }

    std::string end(const std::vector<JobTimings>& timings) const {
        return (request_.include_usage ? event_text(response_.usage(timings)) : std::string()) +
               "data: [DONE]\n\n";
    }

  private:
    const GenerationRequest request_;
    const TextCompletionResponse response_;
    std::vector<size_t> offsets_;
    std::vector<ShownTokens> told_;
};

}  // namespace

void answer_completion(ApiState& state, const Fields& fields, const httplib::Request& request,
                       httplib::Response& response) {
    Completion it = read_completion(state, fields, request, Endpoint::completion);
    const std::shared_ptr<JobGroup> group = state.submit(it.request, it.prompts);
    AnswerHead head = state.head(it.request.variant, "cmpl-");
    if (it.request.stream) {
        const auto stream = std::make_shared<CompletionStream>(
            std::move(it.request), state.tokenizer, std::move(head), group->size());
        stream_answers(state, response, group, stream);
        return;
    }
    const std::vector<Answer> answers = wait_for_answers(*group, request);
    state.note_lengths(*group);
    const CompletionResponse form(it.request, state.tokenizer, std::move(head));
    ordered_json list = ordered_json::array();
    for (size_t i = 0; i < answers.size(); ++i) {
        list.push_back(form.whole(i, group->job(i).request(), answers[i]));
    }
    answer_json(response, it.several ? list : list.at(0));
}

void answer_text_completion(ApiState& state, const Fields& fields, const httplib::Request& request,
                            httplib::Response& response) {
    Completion it = read_completion(state, fields, request, Endpoint::text_completion);
    const std::shared_ptr<JobGroup> group = state.submit(it.request, it.prompts);
    AnswerHead head = state.head(it.request.variant, "cmpl-");
    if (it.request.stream) {
        const auto stream = std::make_shared<TextCompletionStream>(
            std::move(it.request), state.tokenizer, std::move(head), group->size());
        stream_answers(state, response, group, stream);
        return;
    }
    const std::vector<Answer> answers = wait_for_answers(*group, request);
    state.note_lengths(*group);
    const TextCompletionResponse form(it.request, state.tokenizer, std::move(head));
    answer_json(response, form.whole(answers));
}

}  // namespace pleat
