#include "arch/blocks.h"

#include <cmath>

namespace pleat {

ggml_tensor* embed_tokens(GraphBuilder& b) { return b.embed_tokens(); }

ggml_tensor* embed_tokens_scaled(GraphBuilder& b) {
    return ggml_scale(b.ggml(), b.embed_tokens(),
                      std::sqrt(static_cast<float>(b.hparams().n_embd)));
}

Qkv turned_qkv(GraphBuilder& b, const Layer& w, const Pass& pass, ggml_tensor* hidden) {
    Qkv qkv = b.project_qkv(w, pass, b.rms_norm(hidden, w.attn_norm));
    if (w.attn_q_norm != nullptr) qkv.q = b.rms_norm(qkv.q, w.attn_q_norm);
    qkv.q = b.rope(pass, qkv.q);
    if (w.attn_k_norm != nullptr) qkv.k = b.rms_norm(qkv.k, w.attn_k_norm);
    qkv.k = b.rope(pass, qkv.k);
    return qkv;
}

ggml_tensor* self_attention(GraphBuilder& b, const Layer& w, const Pass& pass,
                            ggml_tensor* hidden) {
    const float scale = 1.0F / std::sqrt(static_cast<float>(b.hparams(pass).head_dim_k));
    return b.project(w.attn_output, b.attend(turned_qkv(b, w, pass, hidden), pass, scale));
}

ggml_tensor* swiglu_ffn(GraphBuilder& b, const Layer& w, const Pass&, ggml_tensor* hidden) {
    return b.gated_ffn(w.ffn, Activation::silu, b.rms_norm(hidden, w.ffn_norm));
}

ggml_tensor* swiglu_experts(GraphBuilder& b, const Layer& w, const Pass&, ggml_tensor* hidden) {
    ggml_tensor* const x = b.rms_norm(hidden, w.ffn_norm);
    return b.experts(*w.experts, Activation::silu, x, b.route(*w.experts, x));
}

ggml_tensor* final_norm(GraphBuilder& b, ggml_tensor* hidden) {
    return b.rms_norm(hidden, b.globals().output_norm);
}

ggml_tensor* logits(GraphBuilder& b, ggml_tensor* normed) {
    return b.soft_cap(b.project(b.globals().output, normed), b.hparams().logit_softcap);
}

}  // namespace pleat
