#include "arch/llama.h"

#include <fmt/format.h>

#include <cmath>

#include "arch/common_keys.h"
#include "base/error.h"
#include "graph/builder.h"

namespace pleat {
namespace {

constexpr std::string_view arch_name = "llama";

Hparams hparams(const gguf::File& file) {
    Hparams h = read_common_keys(file, arch_name);
    if (static_cast<uint32_t>(h.rope.n_rot) != h.head_dim_k) {
        bad_key(file, "llama.rope.dimension_count", fmt::format("{}", h.rope.n_rot),
                fmt::format("{} (the head size)", h.head_dim_k));
    }
    h.rope.mode = GGML_ROPE_TYPE_NORMAL;
    return h;
}

void roles(const gguf::File&, const Hparams&, ModelShape& shape) {
    for (LayerShape& layer : shape.layers) layer.role = Role::full_attention;
}

void global_tensors(const Hparams& h, TensorList& list, Globals& g) {
    list.matrix(Part::embedding, Use::get_rows, "token_embd.weight", g.token_embd,
                {h.n_embd, h.n_vocab});
    list.vector(Part::output, Use::mul, "output_norm.weight", g.output_norm, h.n_embd);
    if (list.has("output.weight")) {
        list.matrix(Part::output, Use::mul_mat, "output.weight", g.output.weight,
                    {h.n_embd, h.n_vocab});
    } else {
        list.tied(Part::output, Use::mul_mat, "token_embd.weight", g.output.weight);
    }
    const int64_t n_factors = h.rope.n_rot / 2;
    if (h.rope.longrope) {
        list.vector(Part::output, Use::rope_factors, "rope_factors_long.weight",
                    g.rope_factors_long, n_factors);
        list.vector(Part::output, Use::rope_factors, "rope_factors_short.weight",
                    g.rope_factors_short, n_factors);
    } else {
        list.vector(Part::output, Use::rope_factors, "rope_freqs.weight", g.rope_factors, n_factors,
                    Need::optional);
    }
}

void layer_tensors(const Hparams& h, int32_t layer, TensorList& list, Layer& w) {
    const auto i = static_cast<size_t>(layer);
    const int64_t n_q = int64_t{h.n_head[i]} * h.head_dim_k;
    const int64_t n_k = int64_t{h.n_head_kv[i]} * h.head_dim_k;
    const int64_t n_v = int64_t{h.n_head_kv[i]} * h.head_dim_v;
    const auto name = [&](std::string_view tensor) {
        return fmt::format("blk.{}.{}", layer, tensor);
    };

    list.vector(Part::attention, Use::mul, name("attn_norm.weight"), w.attn_norm, h.n_embd);
    if (list.has(name("attn_qkv.weight"))) {
        list.linear(Part::attention, name("attn_qkv"), w.attn_qkv, h.n_embd, n_q + n_k + n_v);
    } else {
        list.linear(Part::attention, name("attn_q"), w.attn_q, h.n_embd, n_q);
        list.linear(Part::attention, name("attn_k"), w.attn_k, h.n_embd, n_k);
        list.linear(Part::attention, name("attn_v"), w.attn_v, h.n_embd, n_v);
    }
    list.linear(Part::attention, name("attn_output"), w.attn_output,
                int64_t{h.n_head[i]} * h.head_dim_v, h.n_embd);
    list.mark_residual(name("attn_output"));

    list.vector(Part::ffn, Use::mul, name("ffn_norm.weight"), w.ffn_norm, h.n_embd);
    const int64_t n_ff = h.n_ff[i];
    if (h.n_expert == 0) {
        list.linear(Part::ffn, name("ffn_gate"), w.ffn_gate, h.n_embd, n_ff);
        list.linear(Part::ffn, name("ffn_up"), w.ffn_up, h.n_embd, n_ff);
        list.linear(Part::ffn, name("ffn_down"), w.ffn_down, n_ff, h.n_embd);
        list.mark_residual(name("ffn_down"));
        return;
    }
    Experts& experts = w.experts.emplace();
    list.matrix(Part::ffn, Use::mul_mat, name("ffn_gate_inp.weight"), experts.router,
                {h.n_embd, h.n_expert});
    list.experts(Part::ffn, name("ffn_gate_exps"), experts.gate, h.n_embd, n_ff, h.n_expert);
    list.experts(Part::ffn, name("ffn_up_exps"), experts.up, h.n_embd, n_ff, h.n_expert);
    list.experts(Part::ffn, name("ffn_down_exps"), experts.down, n_ff, h.n_embd, h.n_expert);
    list.mark_residual(name("ffn_down_exps"));
}

ggml_tensor* embed(GraphBuilder& b) { return b.embed_tokens(); }

ggml_tensor* attention(GraphBuilder& b, const Layer& w, const Pass& pass, ggml_tensor* hidden) {
    Qkv qkv = b.project_qkv(w, pass, b.rms_norm(hidden, w.attn_norm));
    qkv.q = b.rope(qkv.q);
    qkv.k = b.rope(qkv.k);
    const float scale = 1.0F / std::sqrt(static_cast<float>(b.hparams().head_dim_k));
    return b.attend(qkv, pass, scale, w.attn_output);
}

ggml_tensor* ffn(GraphBuilder& b, const Layer& w, const Pass&, ggml_tensor* hidden) {
    ggml_tensor* const x = b.rms_norm(hidden, w.ffn_norm);
    return w.experts ? b.swiglu_experts(*w.experts, x) : b.swiglu_ffn(w, x);
}

ggml_tensor* final_norm(GraphBuilder& b, ggml_tensor* hidden) {
    return b.rms_norm(hidden, b.globals().output_norm);
}

ggml_tensor* logits(GraphBuilder& b, ggml_tensor* normed) {
    return b.project(b.globals().output, normed);
}

}  // namespace

const Architecture& llama_architecture() {
    static const Architecture row{
        .name = arch_name,
        .hparams = hparams,
        .roles = roles,
        .global_tensors = global_tensors,
        .layer_tensors = layer_tensors,
        .embed = embed,
        .attention = attention,
        .ffn = ffn,
        .final_norm = final_norm,
        .logits = logits,
        .per_layer_keys = {"feed_forward_length", "attention.head_count",
                           "attention.head_count_kv"},
        .stock_layers_are_alike = true,
    };
    return row;
}

}  // namespace pleat
