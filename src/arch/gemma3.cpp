#include <cmath>

#include "arch/blocks.h"
#include "arch/common_keys.h"
#include "arch/gemma_keys.h"
#include "arch/rows.h"
#include "arch/tensors.h"
#include "base/error.h"

// Gemma 3, text (270M to 27B). Facts: docs/design/architectures/gemma3.md
namespace pleat {
namespace {

constexpr std::string_view arch_name = "gemma3";
constexpr uint32_t n_layer_27b = 62;  ///< how stock tells the 27B, whose queries scale otherwise

Hparams hparams(const gguf::File& file) {
    const Keys keys(file, arch_name);
    Hparams h = read_common_keys(keys);
    require_dense_ffn(keys, h);
    set_rope_mode(h, GGML_ROPE_TYPE_NEOX);
    h.logit_softcap = read_softcap(keys, 0.0F);
    h.n_swa = keys.optional("attention.sliding_window", 0, 0, 1U << 30);
    if (h.n_swa > 0) set_window_layers(keys, h, window_pattern(keys, h, 6));
    return h;
}

void global_tensors(const Hparams& h, TensorList& list, Globals& g) {
    embedding_and_head(h, list, g);
    // Heads of embedding models, never part of the logits.
    list.pass_over("dense_2.weight");
    list.pass_over("dense_3.weight");
}

void layer_tensors(const Hparams& h, int32_t layer, TensorList& list, Layer& w) {
    const auto norm = [&](Part part, std::string_view name, ggml_tensor*& target) {
        list.vector(part, Use::mul, layer_name(layer, name), target, h.n_embd);
    };
    norm(Part::attention, "attn_norm.weight", w.attn_norm);
    qkv(h, layer, list, w, bias_and_scale);
    qk_norms(h, layer, list, w);
    attention_output(h, layer, list, w, only_scale);
    norm(Part::attention, "post_attention_norm.weight", w.attn_post_norm);
    norm(Part::ffn, "ffn_norm.weight", w.ffn_norm);
    gated_ffn(h, layer, "", h.layers[static_cast<size_t>(layer)].n_ff, list, w.ffn, unused_scale);
    norm(Part::ffn, "post_ffw_norm.weight", w.ffn_post_norm);
    list.mark_post_norm(layer_name(layer, "post_attention_norm"));
    list.mark_post_norm(layer_name(layer, "post_ffw_norm"));
}

/// Whose inverse square root scales the queries.
uint32_t query_dim(const Hparams& h, const LayerHparams& layer, size_t n_layer) {
    return n_layer == n_layer_27b ? h.n_embd / layer.n_head : layer.head_dim_k;
}

ggml_tensor* attention(GraphBuilder& b, const Layer& w, const Pass& pass, ggml_tensor* hidden) {
    // By the file's layers: a plan has more or fewer passes and stays the same model.
    const uint32_t dim = query_dim(b.hparams(), b.hparams(pass), b.hparams().n_layer);
    Qkv qkv = turned_qkv(b, w, pass, hidden);
    qkv.q = ggml_scale(b.ggml(), qkv.q, 1.0F / std::sqrt(static_cast<float>(dim)));
    return b.rms_norm(b.project(w.attn_output, b.attend(qkv, pass, 1.0F)), w.attn_post_norm);
}

ggml_tensor* ffn(GraphBuilder& b, const Layer& w, const Pass&, ggml_tensor* hidden) {
    ggml_tensor* const x = b.rms_norm(hidden, w.ffn_norm);
    return b.rms_norm(b.gated_ffn(w.ffn, Activation::gelu, x), w.ffn_post_norm);
}

std::vector<gguf::KeyValue> baked_keys(const Hparams& h, const LayerPlan& plan) {
    const LayerHparams& layer = h.layers.front();
    const uint32_t ours = query_dim(h, layer, h.n_layer);
    const uint32_t theirs = query_dim(h, layer, plan.size());
    if (ours != theirs) {
        fail(
            "a model of {} layers scales its queries by 1/sqrt({}), one of {} layers by "
            "1/sqrt({}): stock tells the 27B by its {} layers, so this plan cannot be baked",
            h.n_layer, ours, plan.size(), theirs, n_layer_27b);
    }
    if (h.n_swa == 0) return {};
    return baked_window_pattern(h, plan);
}

}  // namespace

const Architecture& gemma3_architecture() {
    static const Architecture row{
        .name = arch_name,
        .hparams = hparams,
        .global_tensors = global_tensors,
        .layer_tensors = layer_tensors,
        .embed = embed_tokens_scaled,
        .attention = attention,
        .ffn = ffn,
        .final_norm = final_norm,
        .logits = logits,
        .baked_keys = baked_keys,
        .stock_layers_are_alike = true,
    };
    return row;
}

}  // namespace pleat
