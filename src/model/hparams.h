#pragma once

#include <cstdint>
#include <vector>

namespace pleat {

/// RoPE parameters as ggml_rope_ext takes them (Su et al. 2021; YaRN: Peng et al. 2023).
struct Rope {
    int mode = 0;   ///< 0 adjacent pairs, GGML_ROPE_TYPE_NEOX halves, ...
    int n_rot = 0;  ///< rotated dimensions of a head
    int n_ctx_orig = 0;
    float freq_base = 10000.0F;
    float freq_scale = 1.0F;
    float ext_factor = 0.0F;
    float attn_factor = 1.0F;
    float beta_fast = 32.0F;
    float beta_slow = 1.0F;
    bool longrope = false;  ///< frequency factors come long and short, chosen by the context
    bool operator==(const Rope&) const = default;
};

/// What the graph needs to know of a model beside its tensors; the architecture's file fills it
/// from the metadata. Vectors have one entry per layer.
struct Hparams {
    uint32_t n_layer = 0;  ///< without MTP layers
    uint32_t n_layer_nextn = 0;
    uint32_t n_embd = 0;
    uint32_t n_vocab = 0;
    uint32_t n_ctx_train = 0;
    float norm_eps = 0.0F;
    std::vector<uint32_t> n_head;
    std::vector<uint32_t> n_head_kv;
    std::vector<uint32_t> n_ff;
    uint32_t head_dim_k = 0;
    uint32_t head_dim_v = 0;
    uint32_t n_expert = 0;
    uint32_t n_expert_used = 0;
    Rope rope;
};

}  // namespace pleat
