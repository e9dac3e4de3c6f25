#pragma once

#include <llama-cpp.h>

#include <cstdint>
#include <span>
#include <vector>

#include "text/sampling_params.h"
#include "text/tokenizer.h"

namespace pleat {

/// Draws tokens from logits: libllama's samplers in llama.cpp's order, so that the same logits,
/// seed and parameters give the same tokens. One sequence has one sampler; it belongs to one
/// thread.
class Sampler {
  public:
    /// The tokenizer must outlive it. Throws Error when a parameter is out of range or the grammar
    /// or a trigger of it is refused. Triggers are found in the texts of tokens, also of control
    /// tokens, wherever these begin and end.
    Sampler(const SamplingParams& params, const Tokenizer& tokenizer);

    /// Draws from one row of logits, F32 [n_vocab]; minus infinity forbids a token. With a grammar,
    /// what the samplers draw freely is kept when it fits, and drawn again among the fitting tokens
    /// when not: much cheaper than to ask the grammar about the whole vocabulary each time.
    /// Throws Error when a logit is NaN or plus infinity, or when no token is left.
    int32_t sample(std::span<const float> logits);

    /// Tells the samplers what was chosen. Throws Error, and changes nothing, when the vocabulary
    /// has no such token or the grammar does not allow it here; an end token is allowed where the
    /// grammar is complete. A grammar that is lost on the way (see the message) stops sample()
    /// until reset().
    void accept(int32_t token);
    /// A token of the prompt: counts for penalties, not for the grammar.
    void accept_prompt(int32_t token);

    /// Whether the grammar could take this token now. True without a grammar.
    bool fits_grammar(int32_t token) const;

    /// Back to the first token: history, grammar, random numbers. A random seed is drawn anew.
    void reset();

    /// The seed in use, also when it was drawn at random.
    uint32_t seed() const { return llama_sampler_get_seed(chain_.get()); }

  private:
    int32_t draw(bool constrain);
    void check_any_left(bool constrained) const;
    void require_valid(int32_t token) const;

    const Tokenizer& tokenizer_;
    llama_sampler_ptr bias_;     ///< null when nothing is biased
    llama_sampler_ptr grammar_;  ///< null without one
    llama_sampler_ptr chain_;
    bool grammar_lost_ = false;  ///< libllama's grammar has no state left and may not be used
    std::vector<llama_token_data> candidates_;
    std::span<const float> logits_;  ///< only during sample()
};

}  // namespace pleat
