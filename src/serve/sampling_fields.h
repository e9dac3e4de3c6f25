#pragma once

#include <nlohmann/json.hpp>

#include "serve/request_fields.h"
#include "text/sampling_params.h"
#include "text/tokenizer.h"

namespace pleat {

/// The sampler fields of a request, under llama-server's names; what it does not say is as in
/// `defaults`. `n_ctx` is what a look back at all tokens (-1) means. Grammars are read elsewhere.
/// Throws RequestError (400) that names the field.
SamplingParams sampling_fields(const Fields& fields, const SamplingParams& defaults,
                               const Tokenizer& tokenizer, uint32_t n_ctx,
                               const RequestLimits& limits);

/// The same as JSON, under the same names and in llama-server's order, without logit_bias.
nlohmann::ordered_json sampling_json(const SamplingParams& params);

/// logit_bias: {"15043": 1.5, " no": false} as OpenAI writes it, or [[15043, 1.5], [" no", false]];
/// false forbids. A text stands for each of its tokens. Throws RequestError (400).
std::vector<LogitBias> logit_bias_field(const Fields& fields, const Tokenizer& tokenizer,
                                        const RequestLimits& limits);

}  // namespace pleat
