#include "arch/blocks.h"
#include "arch/common_keys.h"
#include "arch/gated_hybrid.h"
#include "arch/rows.h"
#include "arch/tensors.h"

// Qwen3.5, Qwen3.6, dense. Facts: docs/design/architectures/qwen35.md
namespace pleat {
namespace {

constexpr std::string_view arch_name = "qwen35";

Hparams hparams(const gguf::File& file) {
    const Keys keys(file, arch_name);
    Hparams h = read_hybrid_keys(keys);
    require_dense_ffn(keys, h);
    return h;
}

void global_tensors(const Hparams& h, TensorList& list, Globals& g) {
    embedding_and_head(h, list, g);
    // A reranker's head, never part of the logits.
    list.pass_over("cls.output.weight");
    list.pass_over("cls.output.bias");
}

void layer_tensors(const Hparams& h, int32_t layer, TensorList& list, Layer& w) {
    hybrid_layer_tensors(h, layer, list, w);
    gated_ffn(h, layer, "", h.layers[static_cast<size_t>(layer)].n_ff, list, w.ffn, only_scale);
}

}  // namespace

const Architecture& qwen35_architecture() {
    static const Architecture row{
        .name = arch_name,
        .hparams = hparams,
        .global_tensors = global_tensors,
        .layer_tensors = layer_tensors,
        .embed = embed_tokens,
        .attention = hybrid_attention,
        .ffn = swiglu_ffn,
        .final_norm = final_norm,
        .logits = logits,
        .baked_keys = baked_hybrid_keys,
        .stock_layers_are_alike = true,
    };
    return row;
}

}  // namespace pleat
