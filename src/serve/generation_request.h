#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "generate/generation.h"
#include "serve/job.h"
#include "serve/prompt_tokenizer.h"
#include "serve/request_fields.h"
#include "serve/served_models.h"

namespace pleat {

/// What a request is read against.
struct RequestContext {
    const Tokenizer& tokenizer;
    const PromptTokenizer& prompts;
    const ServedModels& models;
    const SamplingParams& sampling;  ///< where a request says nothing, as the next
    int32_t n_predict = -1;
    uint32_t n_ctx = 0;
    RequestLimits limits = {};
    ClientGone gone = [] { return false; };
};

/// What /completion, /v1/completions and /v1/chat/completions have in common.
struct GenerationRequest {
    size_t variant = 0;
    GenerationParams generation = {};  ///< without the grammar of constraint_fields
    int32_t n = 1;                     ///< answers to each prompt
    bool stream = false;
    bool include_usage = false;  ///< stream_options: the last chunk tells it
    int n_probs = -1;            ///< as JobRequest has it
    bool cache_prompt = true;
    int32_t slot = -1;
    std::chrono::milliseconds time_limit{0};
    bool return_tokens = false;
    bool timings_per_token = false;
    std::vector<std::string> response_fields = {};  ///< llama-server's; empty: all
};

/// Throws RequestError that names the field. Probabilities are asked for differently everywhere:
/// only n_probs is read here.
GenerationRequest generation_request(const Fields& fields, const RequestContext& context);

/// The jobs of a request: n for each prompt, in this order, answer i with the seed + i. Throws
/// RequestError (400) when a prompt is empty or does not fit (with both numbers), or when there are
/// too many.
std::vector<std::shared_ptr<Job>> make_jobs(const GenerationRequest& request,
                                            const std::vector<std::vector<int32_t>>& prompts,
                                            const RequestContext& context);

/// llama-server's generation_settings.
nlohmann::ordered_json generation_settings_json(const GenerationParams& params, int n_probs,
                                                bool stream);

/// Throws RequestError (400) with llama-server's type and both numbers.
void check_prompt_fits(size_t n_prompt, uint32_t n_ctx);

}  // namespace pleat
