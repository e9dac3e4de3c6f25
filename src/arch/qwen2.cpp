#include "arch/blocks.h"
#include "arch/common_keys.h"
#include "arch/rows.h"
#include "arch/tensors.h"

// Qwen2, Qwen2.5. Facts: docs/design/architectures/qwen2.md
namespace pleat {
namespace {

constexpr std::string_view arch_name = "qwen2";

Hparams hparams(const gguf::File& file) {
    const Keys keys(file, arch_name);
    Hparams h = read_common_keys(keys);
    require_dense_ffn(keys, h);
    require_whole_rotation(keys, h);
    set_rope_mode(h, GGML_ROPE_TYPE_NEOX);
    return h;
}

void global_tensors(const Hparams& h, TensorList& list, Globals& g) {
    embedding_and_head(h, list, g, true);
}

void layer_tensors(const Hparams& h, int32_t layer, TensorList& list, Layer& w) {
    list.vector(Part::attention, Use::mul, layer_name(layer, "attn_norm.weight"), w.attn_norm,
                h.n_embd);
    qkv(h, layer, list, w, bias_and_scale);
    attention_output(h, layer, list, w, only_scale);
    list.vector(Part::ffn, Use::mul, layer_name(layer, "ffn_norm.weight"), w.ffn_norm, h.n_embd);
    gated_ffn(h, layer, "", h.layers[static_cast<size_t>(layer)].n_ff, list, w.ffn, unused_scale);
}

}  // namespace

const Architecture& qwen2_architecture() {
    static const Architecture row{
        .name = arch_name,
        .hparams = hparams,
        .global_tensors = global_tensors,
        .layer_tensors = layer_tensors,
        .embed = embed_tokens,
        .attention = self_attention,
        .ffn = swiglu_ffn,
        .final_norm = final_norm,
        .logits = logits,
        .stock_layers_are_alike = true,
    };
    return row;
}

}  // namespace pleat
