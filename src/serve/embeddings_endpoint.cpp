// /v1/embeddings and /embeddings.
#include <httplib.h>

#include "serve/api_state.h"
#include "serve/embeddings.h"

namespace pleat {
namespace {

EmbeddingRequest read(const ApiState& state, const Fields& fields,
                      const httplib::Request& request) {
    return embedding_request(fields, state.context(request),
                             static_cast<uint32_t>(state.engine.context(0).n_embd()));
}

std::vector<JobResult> embed(ApiState& state, const EmbeddingRequest& wanted,
                             const httplib::Request& request) {
    const std::shared_ptr<JobGroup> group =
        JobGroup::submit(state.engine, embedding_jobs(wanted, state.engine.n_ctx()));
    std::vector<JobResult> results;
    for (Answer& answer : wait_for_answers(*group, request)) {
        results.push_back(std::move(answer.result));
    }
    state.note_lengths(*group);
    return results;
}

}  // namespace

void answer_openai_embeddings(ApiState& state, const Fields& fields,
                              const httplib::Request& request, httplib::Response& response) {
    if (state.engine.pooling() == Pooling::none) {
        throw RequestError(400,
                           "OpenAI's form has one vector per input, and this server does not pool: "
                           "ask /embeddings, or start it with --pooling mean, last or cls");
    }
    const EmbeddingRequest wanted = read(state, fields, request);
    const std::vector<JobResult> results = embed(state, wanted, request);
    answer_json(response,
                openai_embeddings_json(wanted, results, state.models.name(wanted.variant)));
}

void answer_embeddings(ApiState& state, const Fields& fields, const httplib::Request& request,
                       httplib::Response& response) {
    const EmbeddingRequest wanted = read(state, fields, request);
    const std::vector<JobResult> results = embed(state, wanted, request);
    answer_json(response,
                embeddings_json(wanted, results, state.engine.pooling() != Pooling::none));
}

}  // namespace pleat
