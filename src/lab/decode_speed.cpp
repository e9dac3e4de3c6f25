#include "lab/decode_speed.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "lab/random.h"

namespace pleat {
namespace {

double tokens_per_second(Context& context, uint32_t n_tokens) {
    context.clear();
    SplitMix64 random(n_tokens);
    const auto start = std::chrono::steady_clock::now();
    for (uint32_t i = 0; i < n_tokens; ++i) {
        const auto token = static_cast<int32_t>(random.below(context.n_vocab()));
        if (context.decode(0, {&token, 1}) != DecodeStatus::ok) fail("a token does not fit");
    }
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    return n_tokens / elapsed.count();
}

}  // namespace

std::vector<double> decode_speeds(const std::shared_ptr<Model>& model,
                                  const std::vector<LayerPlan>& plans, ContextSettings settings,
                                  uint32_t n_tokens, uint32_t n_rounds,
                                  const std::function<bool()>& go_on) {
    settings.cache.n_ctx = n_tokens + 1;
    settings.cache.n_seq = 1;
    std::vector<std::unique_ptr<Context>> contexts;
    for (const LayerPlan& plan : plans) {
        contexts.push_back(std::make_unique<Context>(model, plan, settings));
    }
    std::vector<std::vector<double>> speeds(plans.size());
    for (uint32_t round = 0; round <= n_rounds; ++round) {
        for (size_t i = 0; i < contexts.size(); ++i) {
            if (go_on && !go_on()) return {};
            const double speed = tokens_per_second(*contexts[i], n_tokens);
            if (round > 0) speeds[i].push_back(speed);
        }
    }
    std::vector<double> medians;
    for (std::vector<double>& it : speeds) {
        std::ranges::sort(it);
        medians.push_back(it[it.size() / 2]);
    }
    return medians;
}

}  // namespace pleat
