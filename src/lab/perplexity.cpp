#include "lab/perplexity.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"

namespace pleat {
namespace {

struct Sums {
    double nll = 0.0;
    double nll_squared = 0.0;
    size_t n = 0;
};

Perplexity estimate(const Sums& sums, size_t n_chunks) {
    const auto n = static_cast<double>(sums.n);
    const double mean = sums.nll / n;
    const double variance = sums.nll_squared / n - mean * mean;
    Perplexity result{
        .value = std::exp(mean), .error = 0.0, .n_tokens = sums.n, .n_chunks = n_chunks};
    // The delta method: the error of exp(x) is exp(x) times the error of x.
    if (variance > 0.0 && sums.n > 1) result.error = result.value * std::sqrt(variance / (n - 1.0));
    return result;
}

}  // namespace

uint32_t perplexity_sequences(uint32_t n_ctx, uint32_t n_batch) {
    return std::clamp(n_batch / n_ctx, 1U, max_sequences);
}

double negative_log_likelihood(std::span<const float> logits, int32_t token) {
    const float greatest = *std::ranges::max_element(logits);
    double sum = 0.0;
    for (const float logit : logits) sum += std::exp(logit - greatest);
    const float shifted = logits[static_cast<size_t>(token)] - greatest;
    return -(shifted - std::log(sum));
}

Perplexity perplexity(Context& context, std::span<const int32_t> tokens, uint32_t n_ctx,
                      int32_t bos, size_t max_chunks,
                      const std::function<void(const Perplexity&)>& progress) {
    if (tokens.size() < 2 * size_t{n_ctx}) {
        fail(
            "the text has {} tokens, but chunks of {} need at least {}; use a longer text or a "
            "smaller -c",
            tokens.size(), n_ctx, 2 * size_t{n_ctx});
    }
    const size_t n_chunks = std::min(max_chunks, tokens.size() / n_ctx);
    const size_t n_sequences = context.settings().cache.n_seq;
    const uint32_t n_batch = std::min(context.settings().n_batch, n_ctx);
    const uint32_t first_scored = n_ctx / 2;
    Sums sums;
    Perplexity result;
    for (size_t chunk = 0; chunk < n_chunks; chunk += n_sequences) {
        const size_t n_parallel = std::min(n_sequences, n_chunks - chunk);
        context.clear();
        for (uint32_t begin = 0; begin < n_ctx; begin += n_batch) {
            const uint32_t end = std::min(n_ctx, begin + n_batch);
            Batch batch;
            std::vector<int32_t> targets;
            for (size_t s = 0; s < n_parallel; ++s) {
                const auto text = tokens.subspan((chunk + s) * n_ctx, n_ctx);
                for (uint32_t i = begin; i < end; ++i) {
                    // The last token predicts a token of the next chunk, so it is not scored; its
                    // logits are asked for all the same, since row counts decide bits.
                    const bool scored = i >= first_scored;
                    batch.push_back({.token = i == 0 && bos >= 0 ? bos : text[i],
                                     .position = static_cast<int32_t>(i),
                                     .sequence = static_cast<int32_t>(s),
                                     .output = scored});
                    if (scored) targets.push_back(i + 1 < n_ctx ? text[i + 1] : -1);
                }
            }
            switch (context.decode(batch)) {
                case DecodeStatus::ok:
                    break;
                case DecodeStatus::cache_full:
                    fail("{} sequences of {} tokens do not fit into the context", n_parallel,
                         n_ctx);
                case DecodeStatus::cancelled:
                    fail("interrupted after {} chunks", chunk);
            }
            for (size_t i = 0; i < targets.size(); ++i) {
                if (targets[i] < 0) continue;
                const double nll = negative_log_likelihood(context.logits(i), targets[i]);
                sums.nll += nll;
                sums.nll_squared += nll * nll;
                ++sums.n;
            }
        }
        result = estimate(sums, chunk + n_parallel);
        if (progress) progress(result);
    }
    return result;
}

}  // namespace pleat
