#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/context.h"
#include "generate/generation.h"
#include "text/tokenizer.h"

namespace pleat {

/// What a generation tells its caller, and hears from it, while it runs.
struct GenerationHooks {
    /// Text as it appears: whole characters, nothing that may still become a stop string.
    std::function<void(std::string_view)> on_text{};
    /// Asked before each step; true ends the generation. Context::cancel ends a step early.
    std::function<bool()> cancelled{};
};

struct Generated {
    std::string text;             ///< UTF-8; the concatenation of what on_text saw
    std::vector<int32_t> tokens;  ///< drawn ones, an end-of-generation token included
    FinishReason reason = FinishReason::length;
    std::string stop;         ///< the stop string found, which is not part of the text
    std::string logits_hash;  ///< of the last logits computed; empty when there are none
    uint32_t seed = 0;
    size_t n_prompt = 0;
    size_t n_decoded = 0;  ///< steps of one token: the last token drawn is not decoded
    double prompt_ms = 0.0;
    double generation_ms = 0.0;  ///< drawing and decoding, from the end of the prompt on

    double prompt_tokens_per_second() const;      ///< 0 when nothing was measured, as the next
    double generation_tokens_per_second() const;  ///< of decoded tokens
};

/// Continues a sequence: the prompt in chunks of n_batch tokens, which is how stock's completion
/// tool cuts it, then one token at a time until something ends it. Prompt and text together fill at
/// most the context, as there. n_predict 0 only runs the prompt. Throws Error when the prompt is
/// empty or does not fit, and as Sampler and Context do.
Generated generate(Context& context, const Tokenizer& tokenizer, std::span<const int32_t> prompt,
                   const GenerationParams& params, const GenerationHooks& hooks = {},
                   int32_t sequence = 0);

/// The same for a sequence that holds the beginning of the prompt already, its first next_position
/// tokens: they are not run again, but count for penalties. At least one token is left to run.
/// n_prompt of the result counts those that were run.
Generated resume(Context& context, const Tokenizer& tokenizer, std::span<const int32_t> prompt,
                 const GenerationParams& params, const GenerationHooks& hooks = {},
                 int32_t sequence = 0);

/// Throws Error with both numbers when a prompt is empty or longer than what is left of a context.
void check_prompt_size(size_t n_prompt, uint32_t n_ctx, uint32_t n_used = 0);

}  // namespace pleat
