#include "arch/gemma_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "arch/common_keys.h"
#include "base/error.h"

namespace pleat {

std::vector<bool> window_pattern(const Keys& keys, const Hparams& h, uint32_t default_period) {
    const std::string key = keys.full("attention.sliding_window_pattern");
    const gguf::Value* const value = keys.file().find(key);
    if (value != nullptr && std::holds_alternative<gguf::Array>(*value)) {
        return *keys.file().boolean_per_layer(key, h.n_layer);
    }
    if (default_period == 0) {
        if (value == nullptr) keys.missing("attention.sliding_window_pattern");
        bad_key(keys.file(), key, "one value",
                fmt::format("an array of {} booleans, one per layer", h.n_layer));
    }
    const uint32_t period =
        keys.optional("attention.sliding_window_pattern", default_period, 0, max_dimension);
    std::vector<bool> window;
    for (uint32_t i = 0; i < h.n_layer; ++i) {
        window.push_back(period == 0 || i % period < period - 1);
    }
    return window;
}

void set_window_layers(const Keys& keys, Hparams& h, const std::vector<bool>& window) {
    const float freq_base = keys.positive("rope.freq_base_swa", 10000.0F);
    for (size_t i = 0; i < h.layers.size(); ++i) {
        if (window[i]) make_window_layer(h.layers[i], freq_base);
    }
}

std::vector<gguf::KeyValue> baked_window_pattern(const Hparams& h, const LayerPlan& plan) {
    std::vector<uint8_t> window;
    for (const Pass& pass : plan) {
        window.push_back(h.layers[static_cast<size_t>(pass.layer)].window ? 1 : 0);
    }
    if (std::ranges::find(window, 1) == window.end()) {
        fail(
            "the path has no sliding-window layer; stock runs no model with a window and without "
            "such layers, so this plan cannot be baked");
    }
    return {{"attention.sliding_window_pattern",
             gguf::Array{.type = gguf::ValueType::boolean, .items = std::move(window)}}};
}

float read_softcap(const Keys& keys, float fallback) {
    const float cap = keys.finite("final_logit_softcapping", fallback);
    if (cap < 0.0F) {
        bad_key(keys.file(), keys.full("final_logit_softcapping"), fmt::format("{}", cap),
                "0 (off) or more");
    }
    if (cap > 0.0F && !std::isfinite(1.0F / cap)) {
        bad_key(keys.file(), keys.full("final_logit_softcapping"), fmt::format("{}", cap),
                "0 (off) or a number whose inverse is finite");
    }
    return cap;
}

}  // namespace pleat
