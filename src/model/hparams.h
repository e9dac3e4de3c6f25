#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "plan/shape.h"

namespace pleat {

/// RoPE parameters as ggml_rope_ext takes them (Su et al. 2021; YaRN: Peng et al. 2023).
struct Rope {
    int mode = 0;   ///< 0 adjacent pairs, GGML_ROPE_TYPE_NEOX halves, GGML_ROPE_TYPE_IMROPE ...
    int n_rot = 0;  ///< rotated dimensions of a head
    int n_ctx_orig = 0;
    float freq_base = 10000.0F;
    float freq_scale = 1.0F;
    float ext_factor = 0.0F;
    float attn_factor = 1.0F;
    float beta_fast = 32.0F;
    float beta_slow = 1.0F;
    bool uses_factors = true;  ///< the file's frequency factors, where it has any
    bool longrope = false;     ///< frequency factors come long and short, chosen by the context
    /// IMROPE (multimodal RoPE): how many pairs turn with each of a token's four positions.
    std::array<int, 4> sections{};
    bool operator==(const Rope&) const = default;
};

/// The numbers of one layer. All passes of the layer share them.
struct LayerHparams {
    Role role = Role::full_attention;
    bool window = false;    ///< looks back n_swa tokens; a shared-KV consumer may, too
    int32_t kv_owner = -1;  ///< shared_kv_attention: the layer whose K/V it reads
    uint32_t n_head = 0;
    uint32_t n_head_kv = 0;
    uint32_t head_dim_k = 0;
    uint32_t head_dim_v = 0;
    uint32_t n_ff = 0;
    Rope rope;
};

/// Sizes of a Gated DeltaNet layer (Yang et al. 2024), the same for all recurrent layers.
struct DeltaNetHparams {
    uint32_t n_conv = 0;    ///< kernel of the causal convolution
    uint32_t head_dim = 0;  ///< of keys and values
    uint32_t n_head_k = 0;
    uint32_t n_head_v = 0;

    int64_t n_embd_k() const { return int64_t{head_dim} * n_head_k; }
    int64_t n_embd_v() const { return int64_t{head_dim} * n_head_v; }
    /// Channels of the convolution: queries, keys, values.
    int64_t n_channels() const { return 2 * n_embd_k() + n_embd_v(); }
    /// Elements of one sequence's states: the convolution's last inputs, the heads' matrices.
    int64_t n_conv_state() const { return (int64_t{n_conv} - 1) * n_channels(); }
    int64_t n_delta_state() const { return int64_t{head_dim} * n_embd_v(); }
};

/// What the graph needs to know of a model beside its tensors; the architecture's file fills it
/// from the metadata.
struct Hparams {
    uint32_t n_layer = 0;  ///< without MTP layers
    uint32_t n_layer_nextn = 0;
    uint32_t n_embd = 0;
    uint32_t n_vocab = 0;
    uint32_t n_ctx_train = 0;
    float norm_eps = 0.0F;
    std::vector<LayerHparams> layers;  ///< n_layer entries
    uint32_t n_swa = 0;                ///< window in tokens, the query's own included; 0 = none
    uint32_t n_expert = 0;
    uint32_t n_expert_used = 0;
    uint32_t n_ff_exp = 0;          ///< width of one expert
    uint32_t n_ff_shexp = 0;        ///< width of the shared expert
    uint32_t n_embd_per_layer = 0;  ///< width of the embedding that each layer adds of its own
    float logit_softcap = 0.0F;     ///< logits are bounded by +-this; 0 = not at all
    std::optional<DeltaNetHparams> delta_net;
};

}  // namespace pleat
