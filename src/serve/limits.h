#pragma once

#include <cstddef>
#include <cstdint>

namespace pleat {

/// What one request may ask for. The size of the body is HttpSettings' business.
struct RequestLimits {
    int json_depth = 128;        ///< of arrays and objects in each other
    size_t json_members = 4096;  ///< of one object
    size_t json_all_members = 200'000;
    size_t json_values = 4'000'000;
    size_t prompts = 256;  ///< of one request
    size_t choices = 256;  ///< n times prompts
    int32_t n = 64;        ///< answers to one prompt
    size_t stops = 32;
    size_t stop_bytes = 1024;                 ///< of one stop string
    size_t logit_biases = 1024;               ///< tokens, also those that a text stands for
    size_t logit_bias_bytes = 256;            ///< of one such text
    int32_t top_logprobs = 20;                ///< OpenAI's
    int32_t n_probs = 1000;                   ///< llama-server's own field
    size_t tokenize_bytes = size_t{1} << 20;  ///< of a text that /tokenize takes
    size_t tools = 128;
    size_t response_fields = 64;
};

}  // namespace pleat
