#include "arch/blocks.h"
#include "arch/common_keys.h"
#include "arch/rows.h"
#include "arch/tensors.h"

// Qwen3 with experts (30B-A3B, 235B-A22B). Facts: docs/design/architectures/qwen3moe.md
namespace pleat {
namespace {

constexpr std::string_view arch_name = "qwen3moe";

Hparams hparams(const gguf::File& file) {
    const Keys keys(file, arch_name);
    Hparams h = read_common_keys(keys);
    require_experts(keys, h);
    require_whole_rotation(keys, h);
    set_rope_mode(h, GGML_ROPE_TYPE_NEOX);
    return h;
}

void global_tensors(const Hparams& h, TensorList& list, Globals& g) {
    embedding_and_head(h, list, g);
}

void layer_tensors(const Hparams& h, int32_t layer, TensorList& list, Layer& w) {
    list.vector(Part::attention, Use::mul, layer_name(layer, "attn_norm.weight"), w.attn_norm,
                h.n_embd);
    qkv(h, layer, list, w, bias_and_scale);
    qk_norms(h, layer, list, w);
    attention_output(h, layer, list, w, only_scale);
    list.vector(Part::ffn, Use::mul, layer_name(layer, "ffn_norm.weight"), w.ffn_norm, h.n_embd);
    experts(h, layer, h.n_ff_exp, MergedExperts::never, list, w.experts.emplace());
}

}  // namespace

const Architecture& qwen3moe_architecture() {
    static const Architecture row{
        .name = arch_name,
        .hparams = hparams,
        .global_tensors = global_tensors,
        .layer_tensors = layer_tensors,
        .embed = embed_tokens,
        .attention = self_attention,
        .ffn = swiglu_experts,
        .final_norm = final_norm,
        .logits = logits,
        .stock_layers_are_alike = true,
    };
    return row;
}

}  // namespace pleat
