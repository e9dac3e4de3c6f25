#pragma once

#include "graph/builder.h"

/// Sub-layers that several architectures compute alike; an Architecture row names them directly.
namespace pleat {

ggml_tensor* embed_tokens(GraphBuilder& b);
/// Rows of the embedding times sqrt(n_embd).
ggml_tensor* embed_tokens_scaled(GraphBuilder& b);

/// Q, K and V of the normed stream, Q and K normed by head where the layer has norms, then turned.
Qkv turned_qkv(GraphBuilder& b, const Layer& w, const Pass& pass, ggml_tensor* hidden);
/// norm, QKV, RoPE, softmax attention with scale 1/sqrt(head_dim), output projection.
ggml_tensor* self_attention(GraphBuilder& b, const Layer& w, const Pass& pass, ggml_tensor* hidden);

/// norm, then a SwiGLU FFN (Shazeer 2020).
ggml_tensor* swiglu_ffn(GraphBuilder& b, const Layer& w, const Pass& pass, ggml_tensor* hidden);
/// norm, then experts with SwiGLU, chosen by a softmax router.
ggml_tensor* swiglu_experts(GraphBuilder& b, const Layer& w, const Pass& pass, ggml_tensor* hidden);

ggml_tensor* final_norm(GraphBuilder& b, ggml_tensor* hidden);
/// The head, logits bounded where the model says so.
ggml_tensor* logits(GraphBuilder& b, ggml_tensor* normed);

}  // namespace pleat
