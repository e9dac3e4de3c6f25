#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "serve/answer.h"
#include "serve/generation_request.h"

namespace pleat {

/// OpenAI's /v1/embeddings and llama-server's /embeddings.
struct EmbeddingRequest {
    size_t variant = 0;
    std::vector<std::vector<int32_t>> prompts = {};
    /// Of pooled ones: 2 Euclidean, 1 taxicab, greater: that norm, 0 by the greatest value, -1 not
    /// at all.
    int normalize = 2;
    bool base64 = false;
};

/// `input` or llama-server's `content`. Throws RequestError that names the field.
EmbeddingRequest embedding_request(const Fields& fields, const RequestContext& context,
                                   uint32_t n_embd);

/// One job for each prompt. Throws RequestError (400) when one does not fit.
std::vector<std::shared_ptr<Job>> embedding_jobs(const EmbeddingRequest& request, uint32_t n_ctx);

/// As llama.cpp normalizes; all zeros stay as they are.
std::vector<float> normalized(std::span<const float> values, int norm);

/// The answers in OpenAI's form; pooled ones only.
nlohmann::ordered_json openai_embeddings_json(const EmbeddingRequest& request,
                                              const std::vector<JobResult>& results,
                                              const std::string& model);
/// In llama-server's own: a list of rows each. `pooled`: then one row, normalized.
nlohmann::ordered_json embeddings_json(const EmbeddingRequest& request,
                                       const std::vector<JobResult>& results, bool pooled);

/// RFC 4648, with padding.
std::string base64_text(std::span<const std::byte> bytes);

}  // namespace pleat
