#include "generate/generate.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/error.h"
#include "engine/logits_hash.h"

namespace pleat {
namespace {

class Stopwatch {
  public:
    double ms() const {
        return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_)
            .count();
    }

  private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

double per_second(size_t count, double ms) {
    return count > 0 && ms > 0.0 ? static_cast<double>(count) * 1000.0 / ms : 0.0;
}

/// The one run of generate().
class Run {
  public:
    Run(Context& context, Generation& generation, const GenerationHooks& hooks, int32_t sequence)
        : context_(context), generation_(generation), hooks_(hooks), sequence_(sequence) {}

    /// False when it ended on the way.
    bool prefill(std::span<const int32_t> prompt) {
        const Stopwatch watch;
        const size_t n_batch = context_.settings().n_batch;
        bool going = true;
        for (size_t i = 0; going && i < prompt.size(); i += n_batch) {
            const auto chunk = prompt.subspan(i, std::min(n_batch, prompt.size() - i));
            going = decode(chunk);
            if (going) result.n_prompt += chunk.size();
        }
        result.prompt_ms = watch.ms();
        return going;
    }

    void generate() {
        const Stopwatch watch;
        while (!generation_.finished()) {
            show(generation_.step(context_.logits(0)));
            if (generation_.finished()) break;
            const int32_t token = generation_.tokens().back();
            if (!decode({&token, 1})) break;
            ++result.n_decoded;
        }
        result.generation_ms = watch.ms();
    }

    Generated result;

  private:
    bool decode(std::span<const int32_t> tokens) {
        if (hooks_.cancelled && hooks_.cancelled()) return end(FinishReason::cancelled);
        switch (context_.decode(sequence_, tokens)) {
            case DecodeStatus::ok:
                return true;
            case DecodeStatus::cache_full:
                return end(FinishReason::context);
            case DecodeStatus::cancelled:
                return end(FinishReason::cancelled);
        }
        fail("unknown decode status");
    }

    bool end(FinishReason reason) {
        show(generation_.finish(reason));
        return false;
    }

    void show(const std::string& text) {
        if (text.empty()) return;
        result.text += text;
        if (hooks_.on_text) hooks_.on_text(text);
    }

    Context& context_;
    Generation& generation_;
    const GenerationHooks& hooks_;
    int32_t sequence_;
};

Generated run(Context& context, Generation& generation, std::span<const int32_t> prompt,
              const GenerationHooks& hooks, int32_t sequence) {
    Run run(context, generation, hooks, sequence);
    if (run.prefill(prompt)) run.generate();
    Generated result = std::move(run.result);
    result.tokens = generation.tokens();
    result.reason = generation.reason();
    result.stop = generation.stop();
    result.seed = generation.seed();
    if (context.n_outputs() > 0) result.logits_hash = logits_hash(context.logits(0));
    return result;
}

}  // namespace

double Generated::prompt_tokens_per_second() const { return per_second(n_prompt, prompt_ms); }

double Generated::generation_tokens_per_second() const {
    return per_second(n_decoded, generation_ms);
}

void check_prompt_size(size_t n_prompt, uint32_t n_ctx, uint32_t n_used) {
    if (n_prompt == 0) fail("the prompt is empty: there is no token to start from");
    if (n_prompt + n_used <= n_ctx) return;
    if (n_used == 0) {
        fail("the prompt has {} tokens, the context {}: shorten it, or give a larger -c", n_prompt,
             n_ctx);
    }
    fail("the prompt has {} tokens, but {} of the context's {} are in use", n_prompt, n_used,
         n_ctx);
}

Generated generate(Context& context, const Tokenizer& tokenizer, std::span<const int32_t> prompt,
                   const GenerationParams& params, const GenerationHooks& hooks, int32_t sequence) {
    const uint32_t n_ctx = context.settings().cache.n_cells();
    const auto n_used = static_cast<uint32_t>(context.next_position(sequence));
    check_prompt_size(prompt.size(), n_ctx, n_used);
    Generation generation(params, tokenizer, prompt,
                          int64_t{n_ctx} - n_used - static_cast<int64_t>(prompt.size()));
    return run(context, generation, prompt, hooks, sequence);
}

Generated resume(Context& context, const Tokenizer& tokenizer, std::span<const int32_t> prompt,
                 const GenerationParams& params, const GenerationHooks& hooks, int32_t sequence) {
    const uint32_t n_ctx = context.settings().cache.n_cells();
    const auto n_held = static_cast<size_t>(context.next_position(sequence));
    check_prompt_size(prompt.size(), n_ctx);
    if (n_held >= prompt.size()) {
        fail("sequence {} holds {} tokens, so of a prompt of {} none is left to run", sequence,
             n_held, prompt.size());
    }
    Generation generation(params, tokenizer, prompt,
                          int64_t{n_ctx} - static_cast<int64_t>(prompt.size()));
    return run(context, generation, prompt.subspan(n_held), hooks, sequence);
}

}  // namespace pleat
