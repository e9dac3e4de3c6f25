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

/// Mixture-of-experts FFN.
struct Experts {
    ggml_tensor* router = nullptr;  ///< [n_embd, n_expert]
    Linear gate;
    Linear up;
    Linear down;
};

/// The tensors of one source layer. The pointers are borrowed from the Model, which sets them when
/// the first plan needs the sub-layer and never changes them after.
struct Layer {
    ggml_tensor* attn_norm = nullptr;  ///< F32 [n_embd]
    Linear attn_qkv;                   ///< fused; then q, k, v are absent
    Linear attn_q;
    Linear attn_k;
    Linear attn_v;
    Linear attn_output;
    ggml_tensor* ffn_norm = nullptr;  ///< F32 [n_embd]
    Linear ffn_gate;
    Linear ffn_up;
    Linear ffn_down;
    std::optional<Experts> experts;
};

/// Tensors outside the layers.
struct Globals {
    ggml_tensor* token_embd = nullptr;         ///< [n_embd, n_vocab], read by rows
    ggml_tensor* output_norm = nullptr;        ///< F32 [n_embd]
    Linear output;                             ///< [n_embd, n_vocab]; the embedding's when tied
    ggml_tensor* rope_factors = nullptr;       ///< F32 [n_rot/2]
    ggml_tensor* rope_factors_long = nullptr;  ///< longrope
    ggml_tensor* rope_factors_short = nullptr;
};

}  // namespace pleat
