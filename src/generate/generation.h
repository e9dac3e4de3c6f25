#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/sampler.h"
#include "text/sampling_params.h"
#include "text/stop.h"
#include "text/tokenizer.h"
#include "text/utf8_stream.h"

namespace pleat {

/// Why a generation ended.
enum class FinishReason : uint8_t {
    eos,          ///< the model drew an end-of-generation token
    stop_string,  ///< one of the stop strings appeared
    length,       ///< as many tokens as were asked for
    context,      ///< prompt and text fill the context
    cancelled,
};
std::string_view finish_reason_name(FinishReason reason);

struct GenerationParams {
    SamplingParams sampling{};
    int32_t n_predict = -1;            ///< tokens at most; negative: as many as the context holds
    std::vector<std::string> stops{};  ///< the text ends before the first of these
    bool special = false;              ///< control tokens show as text
    bool whole_characters = false;     ///< one that the end cuts is left out, not replaced
    bool operator==(const GenerationParams&) const = default;
};

/// One sequence's way from logits to text: draws tokens, cuts their bytes where characters end,
/// holds back what may become a stop string, and knows when it is over. It has no context: whoever
/// decodes several sequences in one batch has one of these for each.
class Generation {
  public:
    /// The tokens of the prompt count for penalties. `n_room` is how many tokens may follow them
    /// in the context. The tokenizer must outlive it. Throws Error as Sampler does.
    Generation(const GenerationParams& params, const Tokenizer& tokenizer,
               std::span<const int32_t> prompt, int64_t n_room);

    /// Draws the next token from the logits after the last one, F32 [n_vocab], and returns the text
    /// that is safe to show now. Only while not finished().
    std::string step(std::span<const float> logits);
    /// Ends it from outside; returns the text that was held back. No effect when finished.
    std::string finish(FinishReason reason);

    bool finished() const { return finished_; }
    FinishReason reason() const { return reason_; }  ///< once finished
    /// The stop string that ended it; else empty.
    const std::string& stop() const { return stops_.matched(); }
    /// All tokens drawn, an end-of-generation token included. While not finished, the last one is
    /// what has to be decoded next.
    const std::vector<int32_t>& tokens() const { return tokens_; }
    uint32_t seed() const { return sampler_.seed(); }  ///< in use, also when drawn at random

  private:
    /// The first limit reached, if any.
    std::string finish_at_limits();

    const Tokenizer& tokenizer_;
    Sampler sampler_;
    StopMatcher stops_;
    Utf8Stream characters_;
    size_t n_predict_;
    size_t n_room_;
    bool special_;
    bool whole_characters_;
    std::vector<int32_t> tokens_;
    bool finished_ = false;
    FinishReason reason_ = FinishReason::length;
};

}  // namespace pleat
