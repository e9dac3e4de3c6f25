#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "engine/context.h"

namespace pleat {

/// exp of the mean negative log-likelihood in nats, with its standard error.
struct Perplexity {
    double value = 0.0;
    double error = 0.0;
    size_t n_tokens = 0;  ///< scored tokens
    size_t n_chunks = 0;
};

/// How many sequences to give the context for chunks of n_ctx tokens, so that batches are the ones
/// that stock's perplexity tool makes.
uint32_t perplexity_sequences(uint32_t n_ctx, uint32_t n_batch);

/// Perplexity of a text by the rule of stock's perplexity tool: chunks of n_ctx tokens, the first
/// token of each replaced by `bos` (unless negative), the second half of each chunk scored.
/// The context needs perplexity_sequences() sequences of n_ctx tokens. `progress` gets chunks done
/// and the running value. Throws Error when the text is shorter than two chunks, as stock's does.
Perplexity perplexity(Context& context, std::span<const int32_t> tokens, uint32_t n_ctx,
                      int32_t bos, size_t max_chunks = SIZE_MAX,
                      const std::function<void(const Perplexity&)>& progress = {});

/// -log softmax(logits)[token] in nats: the sum of exponentials in double.
double negative_log_likelihood(std::span<const float> logits, int32_t token);

}  // namespace pleat
