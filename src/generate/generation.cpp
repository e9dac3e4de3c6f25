#include "generate/generation.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace pleat {

std::string_view finish_reason_name(FinishReason reason) {
    switch (reason) {
        case FinishReason::eos:
            return "eos";
        case FinishReason::stop_string:
            return "stop";
        case FinishReason::length:
            return "length";
        case FinishReason::context:
            return "context";
        case FinishReason::cancelled:
            return "cancelled";
    }
    fail("unknown finish reason {}", static_cast<int>(reason));
}

Generation::Generation(const GenerationParams& params, const Tokenizer& tokenizer,
                       std::span<const int32_t> prompt, int64_t n_room)
    : tokenizer_(tokenizer),
      sampler_(params.sampling, tokenizer),
      stops_(params.stops),
      n_predict_(params.n_predict < 0 ? std::numeric_limits<size_t>::max()
                                      : static_cast<size_t>(params.n_predict)),
      n_room_(static_cast<size_t>(std::max<int64_t>(n_room, 0))),
      special_(params.special),
      whole_characters_(params.whole_characters) {
    for (const int32_t token : prompt) sampler_.accept_prompt(token);
    finish_at_limits();
}

std::string Generation::finish_at_limits() {
    if (tokens_.size() >= n_predict_) return finish(FinishReason::length);
    if (tokens_.size() >= n_room_) return finish(FinishReason::context);
    return {};
}

std::string Generation::step(std::span<const float> logits) {
    if (finished_) fail("the generation has ended ({})", finish_reason_name(reason_));
    const int32_t token = sampler_.sample(logits);
    sampler_.accept(token);
    tokens_.push_back(token);

    std::string text = stops_.feed(characters_.feed(tokenizer_.piece(token, special_)));
    if (stops_.stopped()) return text + finish(FinishReason::stop_string);
    if (tokenizer_.is_eog(token)) return text + finish(FinishReason::eos);
    return text + finish_at_limits();
}

std::string Generation::finish(FinishReason reason) {
    if (finished_) return {};
    finished_ = true;
    reason_ = reason;
    const std::string cut = characters_.flush();
    std::string text = stops_.feed(whole_characters_ ? std::string() : cut);
    return text + stops_.flush();
}

}  // namespace pleat
