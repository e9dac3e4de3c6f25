#include "arch/common_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"

namespace pleat {
namespace {

// Far above any model, far below what would overflow a product of two of them.
constexpr uint32_t max_dimension = 1U << 24;
constexpr uint32_t max_layers = 512;  ///< stock's limit too

/// Reads keys of one architecture and proves them to be in a range.
class Keys {
  public:
    Keys(const gguf::File& file, std::string_view arch)
        : file_(file), prefix_(fmt::format("{}.", arch)) {}

    std::string full(std::string_view key) const { return prefix_ + std::string(key); }

    uint32_t required(std::string_view key, uint32_t low, uint32_t high) const {
        return in_range(key, file_.required_u32(full(key)), low, high);
    }
    uint32_t optional(std::string_view key, uint32_t fallback, uint32_t low, uint32_t high) const {
        const auto value = file_.u32(full(key));
        return value ? in_range(key, *value, low, high) : fallback;
    }
    float positive(std::string_view key, float fallback) const {
        const auto value = file_.f32(full(key));
        if (!value) return fallback;
        if (!std::isfinite(*value) || *value <= 0.0F) {
            bad_key(file_, full(key), fmt::format("{}", *value), "a finite number above 0");
        }
        return *value;
    }
    float finite(std::string_view key, float fallback) const {
        const auto value = file_.f32(full(key));
        if (value && !std::isfinite(*value)) {
            bad_key(file_, full(key), fmt::format("{}", *value), "a finite number");
        }
        return value.value_or(fallback);
    }
    bool boolean(std::string_view key, bool fallback) const {
        return file_.boolean(full(key)).value_or(fallback);
    }
    /// One value for all layers, or an array with one entry per block of the file.
    std::vector<uint32_t> per_layer(std::string_view key, uint32_t n_block, uint32_t low,
                                    std::vector<uint32_t> fallback) const {
        auto values = file_.u32_per_layer(full(key), n_block);
        if (!values) return fallback;
        for (const uint32_t value : *values) in_range(key, value, low, max_dimension);
        return std::move(*values);
    }
    const gguf::File& file() const { return file_; }

  private:
    uint32_t in_range(std::string_view key, uint32_t value, uint32_t low, uint32_t high) const {
        if (value < low || value > high) {
            bad_key(file_, full(key), fmt::format("{}", value), fmt::format("{} to {}", low, high));
        }
        return value;
    }

    const gguf::File& file_;
    std::string prefix_;
};

/// Scaling as stock reads it; a file without a type but with a factor means linear.
void read_rope(const Keys& keys, Hparams& h) {
    Rope& rope = h.rope;
    rope.n_rot =
        static_cast<int>(keys.optional("rope.dimension_count", h.head_dim_k, 2, h.head_dim_k));
    if (rope.n_rot % 2 != 0) {
        bad_key(keys.file(), keys.full("rope.dimension_count"), fmt::format("{}", rope.n_rot),
                "an even number");
    }
    rope.freq_base = keys.positive("rope.freq_base", 10000.0F);
    rope.n_ctx_orig = static_cast<int>(
        keys.optional("rope.scaling.original_context_length", h.n_ctx_train, 1, 1U << 30));
    float factor = keys.finite("rope.scaling.factor", 0.0F);
    if (factor == 0.0F) factor = keys.finite("rope.scale_linear", 0.0F);
    if (factor < 0.0F) {
        bad_key(keys.file(), keys.full("rope.scaling.factor"), fmt::format("{}", factor),
                "0 or more");
    }
    rope.freq_scale = factor == 0.0F ? 1.0F : 1.0F / factor;
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
    } else if (type == "longrope") {
        rope.longrope = true;
    } else if (type != "linear") {
        bad_key(keys.file(), key, fmt::format("\"{}\"", type), "none, linear, yarn or longrope");
    }
}

}  // namespace

void bad_key(const gguf::File& file, const std::string& key, const std::string& found,
             const std::string& expected) {
    fail("{}: key {} is {}, expected {}", file.path(), key, found, expected);
}

Hparams read_common_keys(const gguf::File& file, std::string_view arch) {
    const Keys keys(file, arch);
    Hparams h;
    const uint32_t n_block = keys.required("block_count", 1, max_layers);
    h.n_layer_nextn = keys.optional("nextn_predict_layers", 0, 0, n_block - 1);
    h.n_layer = n_block - h.n_layer_nextn;
    h.n_embd = keys.required("embedding_length", 1, max_dimension);
    h.n_ctx_train = keys.required("context_length", 1, 1U << 30);
    if (!keys.boolean("attention.causal", true)) {
        bad_key(file, keys.full("attention.causal"), "false", "true (a causal model)");
    }
    const float eps = keys.positive("attention.layer_norm_rms_epsilon", 0.0F);
    if (eps == 0.0F) {
        fail("{}: key {} is missing", file.path(), keys.full("attention.layer_norm_rms_epsilon"));
    }
    h.norm_eps = eps;

    h.n_head = keys.per_layer("attention.head_count", n_block, 1, {});
    if (h.n_head.empty())
        fail("{}: key {} is missing", file.path(), keys.full("attention.head_count"));
    h.n_head_kv = keys.per_layer("attention.head_count_kv", n_block, 1, h.n_head);
    h.n_ff = keys.per_layer("feed_forward_length", n_block, 1, {});
    if (h.n_ff.empty())
        fail("{}: key {} is missing", file.path(), keys.full("feed_forward_length"));
    for (uint32_t i = 0; i < n_block; ++i) {
        if (h.n_head[i] % h.n_head_kv[i] != 0) {
            bad_key(file, keys.full("attention.head_count_kv"),
                    fmt::format("{} in layer {}", h.n_head_kv[i], i),
                    fmt::format("a divisor of the head count {}", h.n_head[i]));
        }
    }
    const uint32_t default_dim = h.n_embd / h.n_head[0];
    h.head_dim_k = keys.optional("attention.key_length", default_dim, 1, max_dimension);
    h.head_dim_v = keys.optional("attention.value_length", default_dim, 1, max_dimension);
    if (h.head_dim_k == 0 || h.head_dim_v == 0) {
        bad_key(file, keys.full("attention.head_count"), fmt::format("{}", h.n_head[0]),
                fmt::format("at most the embedding length {}", h.n_embd));
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
    read_rope(keys, h);
    return h;
}

}  // namespace pleat
