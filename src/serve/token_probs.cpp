#include "serve/token_probs.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace pleat {
namespace {

/// The likeliest first, of equal ones the lower id.
bool before(const TokenProb& a, const TokenProb& b) {
    return a.logprob > b.logprob || (a.logprob == b.logprob && a.token < b.token);
}

/// With logits in place of probabilities. A heap of n, whose front is the least likely: one look
/// at every token, and few of them enter.
std::vector<TokenProb> likeliest(std::span<const float> logits, size_t n) {
    std::vector<TokenProb> heap;
    n = std::min(n, logits.size());
    heap.reserve(n + 1);
    for (size_t i = 0; n > 0 && i < logits.size(); ++i) {
        if (heap.size() == n && logits[i] <= heap.front().logprob) continue;
        heap.push_back({.token = static_cast<int32_t>(i), .logprob = logits[i]});
        std::ranges::push_heap(heap, before);
        if (heap.size() <= n) continue;
        std::ranges::pop_heap(heap, before);
        heap.pop_back();
    }
    std::ranges::sort_heap(heap, before);
    return heap;
}

}  // namespace

TokenOutput token_output(int32_t drawn, std::span<const float> logits, size_t n_top) {
    const double greatest = *std::ranges::max_element(logits);
    double sum = 0.0;
    for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - greatest);
    const double log_total = greatest + std::log(sum);
    const auto logprob = [&](float logit) { return static_cast<float>(logit - log_total); };

    TokenOutput output;
    output.drawn = {.token = drawn, .logprob = logprob(logits[static_cast<size_t>(drawn)])};
    output.top = likeliest(logits, n_top);
    for (TokenProb& token : output.top) token.logprob = logprob(token.logprob);
    return output;
}

}  // namespace pleat
