#pragma once

// Models in miniature for the tests of plans: numbers only, chosen to be told apart in sums.

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "plan/plan.h"
#include "plan/shape.h"

namespace pleat {

struct ShapeOptions {
    int32_t n_layer = 64;
    int32_t n_layer_nextn = 0;
    uint32_t n_head_kv = 2;
    uint32_t head_dim = 64;
    uint32_t n_swa = 0;
};

inline ModelShape llama_shape(const ShapeOptions& options = {}) {
    ModelShape shape;
    shape.architecture = "llama";
    shape.n_layer = options.n_layer;
    shape.n_layer_nextn = options.n_layer_nextn;
    shape.n_embd = 256;
    shape.n_vocab = 512;
    shape.n_swa = options.n_swa;
    LayerShape layer;
    layer.n_head = 4;
    layer.n_head_kv = options.n_head_kv;
    layer.head_dim_k = options.head_dim;
    layer.head_dim_v = options.head_dim;
    layer.attention = {.resident_bytes = 1'000, .read_bytes = 1'000, .flops = 2'000};
    layer.ffn = {.resident_bytes = 30'000, .read_bytes = 10'000, .flops = 20'000};
    layer.other = {.resident_bytes = 7, .read_bytes = 7, .flops = 0};
    shape.layers.assign(static_cast<size_t>(options.n_layer), layer);
    shape.embedding = {.resident_bytes = 500'000, .read_bytes = 50, .flops = 0};
    shape.output = {.resident_bytes = 0, .read_bytes = 500'000, .flops = 1'000'000};
    return shape;
}

/// Every fourth layer has attention, as in Qwen3.5: 3, 7, 11, ...
inline ModelShape hybrid_shape(const ShapeOptions& options = {.n_layer = 16}) {
    ModelShape shape = llama_shape(options);
    for (size_t i = 0; i < shape.layers.size(); ++i) {
        const bool attention = i % 4 == 3;
        shape.layers[i].role = attention ? Role::gated_attention : Role::recurrent;
        if (attention) continue;
        shape.layers[i].n_conv_state = 256;
        shape.layers[i].n_delta_state = 768;
    }
    return shape;
}

/// Windows with every sixth layer full, as in Gemma 3: 5, 11, 17, ...
inline ModelShape window_shape(const ShapeOptions& options = {.n_layer = 12, .n_swa = 512}) {
    ModelShape shape = llama_shape(options);
    for (size_t i = 0; i < shape.layers.size(); ++i) {
        if (i % 6 != 5) shape.layers[i].role = Role::local_attention;
    }
    return shape;
}

/// The second half of the layers reads the K/V of the last two of the first half, in turn: with
/// eight layers 4 and 6 read layer 2, 5 and 7 read layer 3.
inline ModelShape shared_shape(const ShapeOptions& options = {.n_layer = 8, .n_swa = 512}) {
    ModelShape shape = llama_shape(options);
    const int32_t half = options.n_layer / 2;
    for (int32_t layer = 0; layer < options.n_layer; ++layer) {
        LayerShape& it = shape.layers[static_cast<size_t>(layer)];
        if (layer < half && layer % 2 == 0) it.role = Role::local_attention;
        if (layer < half) continue;
        it.role = Role::shared_kv_attention;
        it.kv_owner = half - 2 + (layer - half) % 2;
    }
    return shape;
}

inline LayerPlan resolve(const std::string& spec, const ModelShape& shape) {
    return LayerPlan::resolve(parse_spec(spec), shape);
}

inline std::vector<int32_t> layers_of(const LayerPlan& plan) {
    std::vector<int32_t> layers;
    for (const Pass& pass : plan) layers.push_back(pass.layer);
    return layers;
}

inline std::vector<int32_t> slots_of(const LayerPlan& plan) {
    std::vector<int32_t> slots;
    for (const Pass& pass : plan) slots.push_back(pass.slot);
    return slots;
}

/// The message of the Error that the call throws; "no error" when it does not.
template <typename Call>
std::string error_of(Call call) {
    try {
        call();
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

/// A spec that resolves on any model without roles of this many layers, most of the time.
inline Spec random_spec(uint32_t seed, int32_t n_layer) {
    std::mt19937 random(seed);
    const auto below = [&](int64_t n) {
        return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
    };
    const auto item = [&] {
        LayerItem out;
        out.first = below(n_layer);
        out.last = below(2) == 0 ? *out.first : below(n_layer);
        if (below(10) == 0) out.first.reset();
        if (below(10) == 0) out.last.reset();
        return out;
    };
    const auto set = [&](std::vector<LayerItem>& items) {
        for (int64_t n = below(3); n > 0; --n) items.push_back(item());
    };
    Spec spec;
    if (below(2) == 0) {
        spec.layers.emplace();
        for (int64_t n = 1 + below(5); n > 0; --n) {
            spec.layers->push_back(item());
            Marks& marks = spec.layers->back().marks;
            marks.attention = below(4) != 0;
            marks.ffn = below(4) != 0;
            if (below(3) == 0) marks.scale = static_cast<float>(below(1000)) / 700.0F;
            if (below(3) == 0)
                marks.qk_scale = std::ldexp(1.0F, static_cast<int>(below(250)) - 125);
        }
    } else {
        for (int64_t n = below(4); n > 0; --n) {
            RepeatBlock block;
            block.begin = below(n_layer);
            block.end = block.begin + 1 + below(n_layer - block.begin);
            block.traversals = 1 + below(4);
            spec.repeat.push_back(block);
        }
        if (below(2) == 0) spec.skip.push_back(item());
    }
    set(spec.drop_attention);
    set(spec.drop_ffn);
    return spec;
}

}  // namespace pleat
