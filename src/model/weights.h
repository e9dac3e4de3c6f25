#pragma once

#include <ggml.h>

#include <optional>
#include <vector>

namespace pleat {

/// A projection `y = W x [* scale] [+ bias]`. Null = the file has none, or no plan needed it yet.
struct Linear {
    ggml_tensor* weight = nullptr;  ///< [n_in, n_out]; experts [n_in, n_out, n_expert]
    ggml_tensor* bias = nullptr;    ///< F32 [n_out]
    ggml_tensor* scale = nullptr;   ///< F32 [1]; experts [n_expert]
};

/// A gated FFN: down(act(gate x) * (up x)).
struct GatedFfn {
    Linear gate;
    Linear up;
    Linear down;
};

/// Mixture-of-experts FFN.
struct Experts {
    ggml_tensor* router = nullptr;        ///< [n_embd, n_expert]
    ggml_tensor* router_scale = nullptr;  ///< F32 [n_embd], on the router's input
    Linear gate_up;  ///< gate's rows, then up's, of every expert; then gate and up are absent
    Linear gate;
    Linear up;
    Linear down;
};

/// An expert that every token passes, behind a gate of its own.
struct SharedExpert {
    ggml_tensor* router = nullptr;  ///< [n_embd]
    GatedFfn ffn;
};

/// Gated DeltaNet in place of attention (Yang et al. 2024).
struct DeltaNet {
    Linear qkv;                      ///< [n_embd, channels of queries, keys, values]
    Linear gate;                     ///< [n_embd, n_embd_v]
    ggml_tensor* conv = nullptr;     ///< F32 [n_conv, channels]
    Linear alpha;                    ///< [n_embd, n_head_v]: decay
    Linear beta;                     ///< [n_embd, n_head_v]: write strength
    ggml_tensor* dt_bias = nullptr;  ///< F32 [n_head_v]
    ggml_tensor* a = nullptr;        ///< F32 [n_head_v], negative
    ggml_tensor* norm = nullptr;     ///< F32 [head_dim]
    Linear output;                   ///< [n_embd_v, n_embd]
};

/// What a layer adds after both sub-layers: an embedding of its own, looked up by the token.
struct LayerEmbedding {
    Linear gate;                  ///< [n_embd, n_embd_per_layer]
    Linear output;                ///< [n_embd_per_layer, n_embd]
    ggml_tensor* norm = nullptr;  ///< F32 [n_embd]
};

/// The tensors of one source layer. The pointers are borrowed from the Model, which sets them when
/// the first plan needs the sub-layer and never changes them after.
struct Layer {
    ggml_tensor* attn_norm = nullptr;  ///< F32 [n_embd]
    Linear attn_qkv;                   ///< fused; then q, k, v are absent
    Linear attn_q;
    Linear attn_k;
    Linear attn_v;
    ggml_tensor* attn_q_norm = nullptr;  ///< F32 [head_dim]
    ggml_tensor* attn_k_norm = nullptr;  ///< F32 [head_dim]
    Linear attn_output;
    ggml_tensor* attn_post_norm = nullptr;  ///< F32 [n_embd], of the attention's output
    std::optional<DeltaNet> delta_net;

    ggml_tensor* ffn_norm = nullptr;  ///< F32 [n_embd]
    GatedFfn ffn;
    ggml_tensor* ffn_post_norm = nullptr;  ///< F32 [n_embd], of the FFN's output
    std::optional<Experts> experts;
    std::optional<SharedExpert> shared_expert;
    ggml_tensor* experts_norm = nullptr;       ///< F32 [n_embd], of the experts' input
    ggml_tensor* experts_post_norm = nullptr;  ///< F32 [n_embd], of the experts' output
    ggml_tensor* dense_post_norm = nullptr;    ///< F32 [n_embd], of the FFN beside the experts

    std::optional<LayerEmbedding> embedding;
    ggml_tensor* output_scale = nullptr;  ///< F32 [1], on the whole residual stream
};

/// Tensors outside the layers.
struct Globals {
    ggml_tensor* token_embd = nullptr;         ///< [n_embd, n_vocab], read by rows
    ggml_tensor* output_norm = nullptr;        ///< F32 [n_embd]
    Linear output;                             ///< [n_embd, n_vocab]; the embedding's when tied
    ggml_tensor* rope_factors = nullptr;       ///< F32 [n_rot/2]
    ggml_tensor* rope_factors_long = nullptr;  ///< longrope
    ggml_tensor* rope_factors_short = nullptr;
    ggml_tensor* layer_token_embd = nullptr;  ///< [n_embd_per_layer * n_layer, n_vocab]
    Linear layer_embd_proj;                   ///< [n_embd, n_embd_per_layer * n_layer]
    ggml_tensor* layer_embd_norm = nullptr;   ///< F32 [n_embd_per_layer]
};

}  // namespace pleat
