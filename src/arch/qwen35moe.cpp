#include "arch/blocks.h"
#include "arch/common_keys.h"
#include "arch/gated_hybrid.h"
#include "arch/rows.h"
#include "arch/tensors.h"

// Qwen3.5, Qwen3.6 with experts. Facts: docs/design/architectures/qwen35moe.md
namespace pleat {
namespace {

constexpr std::string_view arch_name = "qwen35moe";

Hparams hparams(const gguf::File& file) {
    const Keys keys(file, arch_name);
    Hparams h = read_hybrid_keys(keys);
    require_experts(keys, h);
    h.n_ff_shexp =
        keys.optional("expert_shared_feed_forward_length", h.layers.front().n_ff, 1, max_dimension);
    if (h.n_ff_shexp == 0) keys.missing("expert_shared_feed_forward_length");
    return h;
}

void global_tensors(const Hparams& h, TensorList& list, Globals& g) {
    embedding_and_head(h, list, g);
}

void layer_tensors(const Hparams& h, int32_t layer, TensorList& list, Layer& w) {
    hybrid_layer_tensors(h, layer, list, w);
    experts(h, layer, h.n_ff_exp, MergedExperts::allowed, list, w.experts.emplace());
    SharedExpert& shared = w.shared_expert.emplace();
    list.matrix(Part::ffn, Use::mul_mat, layer_name(layer, "ffn_gate_inp_shexp.weight"),
                shared.router, {h.n_embd});
    gated_ffn(h, layer, "_shexp", h.n_ff_shexp, list, shared.ffn, only_scale);
}

ggml_tensor* ffn(GraphBuilder& b, const Layer& w, const Pass&, ggml_tensor* hidden) {
    ggml_context* const c = b.ggml();
    ggml_tensor* const x = b.rms_norm(hidden, w.ffn_norm);
    ggml_tensor* const routed = b.experts(*w.experts, Activation::silu, x, b.route(*w.experts, x));
    ggml_tensor* const shared = b.gated_ffn(w.shared_expert->ffn, Activation::silu, x);
    ggml_tensor* const gate = ggml_sigmoid(c, ggml_mul_mat(c, w.shared_expert->router, x));
    return ggml_add(c, routed, ggml_mul(c, shared, gate));
}

}  // namespace

const Architecture& qwen35moe_architecture() {
    static const Architecture row{
        .name = arch_name,
        .hparams = hparams,
        .global_tensors = global_tensors,
        .layer_tensors = layer_tensors,
        .embed = embed_tokens,
        .attention = hybrid_attention,
        .ffn = ffn,
        .final_norm = final_norm,
        .logits = logits,
        .baked_keys = baked_hybrid_keys,
        .stock_layers_are_alike = true,
    };
    return row;
}

}  // namespace pleat
