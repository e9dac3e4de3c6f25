#pragma once

#include <cstddef>
#include <string>

#include "support/random_model.h"

/// What a layer of a random model is, as its settings say it or leave it to stock's rule. `layer`
/// counts from 0; n_layer is the MTP block where there is one.
namespace pleat::test {

inline bool is_qwen35(const RandomModel& model) {
    return model.architecture == "qwen35" || model.architecture == "qwen35moe";
}
inline bool is_gemma(const RandomModel& model) {
    return model.architecture == "gemma3" || model.architecture == "gemma4";
}

inline int n_block(const RandomModel& model) { return model.n_layer + (model.mtp ? 1 : 0); }

inline bool is_recurrent(const RandomModel& model, int layer) {
    if (!is_qwen35(model) || layer >= model.n_layer) return false;
    if (!model.recurrent_layers.empty()) {
        return model.recurrent_layers[static_cast<size_t>(layer)];
    }
    const int interval = model.full_attention_interval == 0 ? 4 : model.full_attention_interval;
    return (layer + 1) % interval != 0;
}

inline bool is_window(const RandomModel& model, int layer) {
    if (model.n_swa == 0) return false;
    if (!model.window_layers.empty()) return model.window_layers[static_cast<size_t>(layer)];
    const int pattern = model.window_pattern == 0 ? 6 : model.window_pattern;
    return layer % pattern != pattern - 1;
}

inline bool owns_kv(const RandomModel& model, int layer) {
    return layer < model.n_layer - model.n_shared_kv;
}

inline int head_size(const RandomModel& model, int layer) {
    return model.head_dim_swa != 0 && is_window(model, layer) ? model.head_dim_swa
                                                              : model.head_size();
}

inline int n_head_kv(const RandomModel& model, int layer) {
    return model.n_head_kv_per_layer.empty()
               ? model.n_head_kv
               : model.n_head_kv_per_layer[static_cast<size_t>(layer)];
}

inline int n_ff(const RandomModel& model, int layer) {
    return model.n_ff_per_layer.empty() ? model.n_ff
                                        : model.n_ff_per_layer[static_cast<size_t>(layer)];
}

inline int n_ff_exp(const RandomModel& model) {
    return model.n_ff_exp == 0 ? model.n_ff : model.n_ff_exp;
}

}  // namespace pleat::test
