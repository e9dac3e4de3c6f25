#pragma once

#include <cstddef>
#include <cstdint>

namespace pleat {

/// What one request may ask for. The size of the body is HttpSettings' business.
struct RequestLimits {
    int json_depth = 128;  ///< of arrays and objects in each other
    size_t prompts = 256;  ///< of one request
    size_t choices = 128;  ///< n times prompts
    size_t stops = 32;
    size_t stop_bytes = 1024;    ///< of one stop string
    size_t logit_biases = 1024;  ///< tokens, also those that a text stands for
    int32_t top_logprobs = 20;   ///< OpenAI's
    int32_t n_probs = 1000;      ///< of llama-server's own endpoints
    size_t dry_breakers = 64;    ///< dry_sequence_breakers
    size_t grammar_bytes = 256 << 10;
};

}  // namespace pleat
