#include "arch/blocks.h"
#include "arch/common_keys.h"
#include "arch/rows.h"
#include "arch/tensors.h"

// Llama 1 to 3, Mistral, Mixtral. Facts: docs/design/architectures/llama.md
namespace pleat {
namespace {

constexpr std::string_view arch_name = "llama";

Hparams hparams(const gguf::File& file) {
    const Keys keys(file, arch_name);
    Hparams h = read_common_keys(keys);
    require_dense_ffn(keys, h);  // an expert's width, too
    require_whole_rotation(keys, h);
    set_rope_mode(h, GGML_ROPE_TYPE_NORMAL);
    return h;
}

void global_tensors(const Hparams& h, TensorList& list, Globals& g) {
    embedding_and_head(h, list, g);
    const Rope& rope = h.layers.front().rope;
    const int64_t n_factors = rope.n_rot / 2;
    if (rope.longrope) {
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
    list.vector(Part::attention, Use::mul, layer_name(layer, "attn_norm.weight"), w.attn_norm,
                h.n_embd);
    qkv(h, layer, list, w, bias_and_scale);
    attention_output(h, layer, list, w, bias_and_scale);

    list.vector(Part::ffn, Use::mul, layer_name(layer, "ffn_norm.weight"), w.ffn_norm, h.n_embd);
    const int64_t n_ff = h.layers[static_cast<size_t>(layer)].n_ff;
    if (h.n_expert == 0) {
        gated_ffn(h, layer, "", n_ff, list, w.ffn, bias_and_scale);
    } else {
        experts(h, layer, n_ff, MergedExperts::never, list, w.experts.emplace());
    }
}

ggml_tensor* ffn(GraphBuilder& b, const Layer& w, const Pass& pass, ggml_tensor* hidden) {
    return w.experts ? swiglu_experts(b, w, pass, hidden) : swiglu_ffn(b, w, pass, hidden);
}

}  // namespace

const Architecture& llama_architecture() {
    static const Architecture row{
        .name = arch_name,
        .hparams = hparams,
        .global_tensors = global_tensors,
        .layer_tensors = layer_tensors,
        .embed = embed_tokens,
        .attention = self_attention,
        .ffn = ffn,
        .final_norm = final_norm,
        .logits = logits,
        .stock_layers_are_alike = true,
    };
    return row;
}

}  // namespace pleat
