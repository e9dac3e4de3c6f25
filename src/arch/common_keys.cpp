#include "arch/common_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"

namespace pleat {
namespace {

constexpr uint32_t max_layers = 512;  ///< stock's limit too

/// Scaling as stock reads it; a file without a type but with a factor means linear.
Rope read_rope(const Keys& keys, uint32_t n_ctx_train, uint32_t head_dim) {
    Rope rope;
    rope.n_rot = read_n_rot(keys, "rope.dimension_count", head_dim, head_dim);
    rope.freq_base = keys.positive("rope.freq_base", 10000.0F);
    rope.n_ctx_orig = static_cast<int>(
        keys.optional("rope.scaling.original_context_length", n_ctx_train, 1, 1U << 30));
    float factor = keys.finite("rope.scaling.factor", 0.0F);
    if (factor == 0.0F) factor = keys.finite("rope.scale_linear", 0.0F);
    if (factor < 0.0F) {
        bad_key(keys.file(), keys.full("rope.scaling.factor"), fmt::format("{}", factor),
                "0 or more");
    }
    rope.freq_scale = factor == 0.0F ? 1.0F : 1.0F / factor;
    if (!std::isfinite(rope.freq_scale)) {
        bad_key(keys.file(), keys.full("rope.scaling.factor"), fmt::format("{}", factor),
                "a number whose inverse is finite");
    }
    rope.attn_factor = keys.finite("rope.scaling.attn_factor", 1.0F);
    rope.beta_fast = keys.finite("rope.scaling.yarn_beta_fast", 32.0F);
    rope.beta_slow = keys.finite("rope.scaling.yarn_beta_slow", 1.0F);

    const std::string key = keys.full("rope.scaling.type");
    const std::string type = keys.file().string(key).value_or("linear");
    if (type == "none") {
        rope.freq_scale = 1.0F;
    } else if (type == "yarn") {
        // ggml multiplies the magnitude by 1 + 0.1 ln(1/freq_scale) itself; stock divides it out
        // again and applies the same term from the outside.
        const float inverse = 1.0F / rope.freq_scale;
        rope.ext_factor = keys.finite("rope.scaling.yarn_ext_factor", 1.0F);
        const float magnitude = inverse > 1.0F ? 1.0F + 0.1F * std::log(inverse) : 1.0F;
        rope.attn_factor *= magnitude / (1.0F + 0.1F * std::log(inverse));
        if (!std::isfinite(rope.attn_factor)) {
            bad_key(keys.file(), keys.full("rope.scaling.factor"), fmt::format("{}", factor),
                    "one that YaRN can scale attention by");
        }
    } else if (type == "longrope") {
        rope.longrope = true;
    } else if (type != "linear") {
        bad_key(keys.file(), key, fmt::format("\"{}\"", type), "none, linear, yarn or longrope");
    }
    return rope;
}

}  // namespace

int read_n_rot(const Keys& keys, std::string_view key, uint32_t fallback, uint32_t head_dim) {
    const uint32_t n_rot = keys.optional(key, fallback, 2, head_dim);
    if (n_rot % 2 != 0) {
        bad_key(keys.file(), keys.full(key), fmt::format("{}", n_rot), "an even number");
    }
    return static_cast<int>(n_rot);
}

void require_even_head(const Keys& keys, std::string_view key, uint32_t head_dim) {
    if (head_dim % 2 == 0) return;
    if (!keys.has(key)) {
        fail(
            "{}: heads have {} values (embedding_length / attention.head_count), expected an even "
            "number, or key {}",
            keys.file().path(), head_dim, keys.full(key));
    }
    bad_key(keys.file(), keys.full(key), fmt::format("{}", head_dim), "an even number");
}

Hparams read_common_keys(const Keys& keys, Mtp mtp) {
    const gguf::File& file = keys.file();
    Hparams h;
    const uint32_t n_block = keys.required("block_count", 1, max_layers);
    h.n_layer_nextn = keys.optional("nextn_predict_layers", 0, 0, n_block - 1);
    if (h.n_layer_nextn > 0 && mtp == Mtp::refused) {
        bad_key(file, keys.full("nextn_predict_layers"), fmt::format("{}", h.n_layer_nextn),
                "0: this architecture has no such layers");
    }
    h.n_layer = n_block - h.n_layer_nextn;
    h.n_embd = keys.required("embedding_length", 1, max_dimension);
    h.n_ctx_train = keys.required("context_length", 1, 1U << 30);
    if (!keys.boolean("attention.causal", true)) {
        bad_key(file, keys.full("attention.causal"), "false", "true (a causal model)");
    }
    const float eps = keys.positive("attention.layer_norm_rms_epsilon", 0.0F);
    if (eps == 0.0F) keys.missing("attention.layer_norm_rms_epsilon");
    h.norm_eps = eps;

    const auto n_head = keys.per_layer("attention.head_count", n_block, 1, {});
    if (n_head.empty()) keys.missing("attention.head_count");
    const auto n_head_kv = keys.per_layer("attention.head_count_kv", n_block, 1, n_head);
    const auto n_ff =
        keys.per_layer("feed_forward_length", n_block, 0, std::vector<uint32_t>(n_block));
    const uint32_t default_dim = h.n_embd / n_head[0];
    const uint32_t dim_k = keys.optional("attention.key_length", default_dim, 1, max_dimension);
    const uint32_t dim_v = keys.optional("attention.value_length", default_dim, 1, max_dimension);
    if (dim_k == 0 || dim_v == 0) {
        bad_key(file, keys.full("attention.head_count"), fmt::format("{}", n_head[0]),
                fmt::format("at most the embedding length {}", h.n_embd));
    }
    require_even_head(keys, "attention.key_length", dim_k);
    const Rope rope = read_rope(keys, h.n_ctx_train, dim_k);
    for (uint32_t i = 0; i < n_block; ++i) {
        if (n_head[i] % n_head_kv[i] != 0) {
            bad_key(file, keys.full("attention.head_count_kv"),
                    fmt::format("{} in layer {}", n_head_kv[i], i),
                    fmt::format("a divisor of the head count {}", n_head[i]));
        }
        if (i >= h.n_layer) continue;
        LayerHparams& layer = h.layers.emplace_back();
        layer.n_head = n_head[i];
        layer.n_head_kv = n_head_kv[i];
        layer.head_dim_k = dim_k;
        layer.head_dim_v = dim_v;
        layer.n_ff = n_ff[i];
        layer.rope = rope;
    }

    h.n_expert = keys.optional("expert_count", 0, 0, 4096);
    h.n_expert_used = keys.optional("expert_used_count", 0, 0, h.n_expert);
    if (h.n_expert > 0 && h.n_expert_used == 0) {
        bad_key(file, keys.full("expert_used_count"), "0",
                fmt::format("1 to {} (the expert count)", h.n_expert));
    }

    // The vocabulary's size is the embedding's; the architecture proves the rest against it.
    const gguf::TensorInfo* const embedding = file.find_tensor("token_embd.weight");
    if (embedding == nullptr) fail("{}: tensor token_embd.weight is missing", file.path());
    if (embedding->ne[1] > INT32_MAX) {
        fail("{}: tensor token_embd.weight has {} rows, expected at most {}", file.path(),
             embedding->ne[1], INT32_MAX);
    }
    h.n_vocab = static_cast<uint32_t>(embedding->ne[1]);
    return h;
}

void require_dense_ffn(const Keys& keys, const Hparams& h) {
    for (size_t i = 0; i < h.layers.size(); ++i) {
        if (h.layers[i].n_ff > 0) continue;
        if (!keys.has("feed_forward_length")) keys.missing("feed_forward_length");
        bad_key(keys.file(), keys.full("feed_forward_length"), fmt::format("0 in layer {}", i),
                "1 or more");
    }
}

void require_experts(const Keys& keys, Hparams& h) {
    if (h.n_expert == 0) {
        if (!keys.has("expert_count")) keys.missing("expert_count");
        bad_key(keys.file(), keys.full("expert_count"), "0", "1 or more");
    }
    const uint32_t fallback = h.layers.front().n_ff / h.n_expert_used;
    h.n_ff_exp = keys.optional("expert_feed_forward_length", fallback, 1, max_dimension);
    if (h.n_ff_exp == 0) keys.missing("expert_feed_forward_length");
}

void require_whole_rotation(const Keys& keys, const Hparams& h) {
    const LayerHparams& layer = h.layers.front();
    if (static_cast<uint32_t>(layer.rope.n_rot) == layer.head_dim_k) return;
    bad_key(keys.file(), keys.full("rope.dimension_count"), fmt::format("{}", layer.rope.n_rot),
            fmt::format("{} (the head size)", layer.head_dim_k));
}

void set_rope_mode(Hparams& h, int mode) {
    for (LayerHparams& layer : h.layers) layer.rope.mode = mode;
}

void make_window_layer(LayerHparams& layer, float freq_base) {
    layer.role = Role::local_attention;
    layer.window = true;
    layer.rope.freq_base = freq_base;
    // Only what looks far back has to be stretched.
    layer.rope.freq_scale = 1.0F;
    layer.rope.uses_factors = false;
}

}  // namespace pleat
