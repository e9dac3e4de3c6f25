#include "arch/tensors.h"

namespace pleat {
namespace {

const LayerHparams& of(const Hparams& h, int32_t layer) {
    return h.layers[static_cast<size_t>(layer)];
}

}  // namespace

void embedding_and_head(const Hparams& h, TensorList& list, Globals& g, bool head_bias) {
    list.matrix(Part::embedding, Use::get_rows, "token_embd.weight", g.token_embd,
                {h.n_embd, h.n_vocab});
    list.vector(Part::output, Use::mul, "output_norm.weight", g.output_norm, h.n_embd);
    const gguf::TensorInfo* const head = list.file().find_tensor("output.weight");
    if (head != nullptr) {
        // Only this type needs a scale beside it; stock takes it for no other.
        const Scale scale = head->type == GGML_TYPE_NVFP4 ? Scale::applied : Scale::refused;
        list.linear(Part::output, "output", g.output, h.n_embd, h.n_vocab,
                    {.bias = false, .scale = scale});
    } else {
        list.tied(Part::output, Use::mul_mat, "token_embd.weight", g.output.weight);
    }
    if (head_bias) {
        list.vector(Part::output, Use::add, "output.bias", g.output.bias, h.n_vocab,
                    Need::optional);
    }
}

void qkv(const Hparams& h, int32_t layer, TensorList& list, Layer& w, Companions companions) {
    const LayerHparams& l = of(h, layer);
    const int64_t n_q = int64_t{l.n_head} * l.head_dim_k;
    const int64_t n_k = int64_t{l.n_head_kv} * l.head_dim_k;
    const int64_t n_v = int64_t{l.n_head_kv} * l.head_dim_v;
    const auto linear = [&](std::string_view name, Linear& target, int64_t n_out) {
        list.linear(Part::attention, layer_name(layer, name), target, h.n_embd, n_out, companions);
    };
    if (list.has(layer_name(layer, "attn_qkv.weight"))) {
        linear("attn_qkv", w.attn_qkv, n_q + n_k + n_v);
        return;
    }
    linear("attn_q", w.attn_q, n_q);
    linear("attn_k", w.attn_k, n_k);
    linear("attn_v", w.attn_v, n_v);
}

void qk_norms(const Hparams& h, int32_t layer, TensorList& list, Layer& w) {
    const int64_t dim = of(h, layer).head_dim_k;
    list.vector(Part::attention, Use::mul, layer_name(layer, "attn_q_norm.weight"), w.attn_q_norm,
                dim);
    list.vector(Part::attention, Use::mul, layer_name(layer, "attn_k_norm.weight"), w.attn_k_norm,
                dim);
}

void attention_output(const Hparams& h, int32_t layer, TensorList& list, Layer& w,
                      Companions companions) {
    const LayerHparams& l = of(h, layer);
    const std::string name = layer_name(layer, "attn_output");
    list.linear(Part::attention, name, w.attn_output, int64_t{l.n_head} * l.head_dim_v, h.n_embd,
                companions);
    list.mark_residual(name);
}

void gated_ffn(const Hparams& h, int32_t layer, std::string_view suffix, int64_t n_ff,
               TensorList& list, GatedFfn& w, Companions companions) {
    const auto name = [&](std::string_view tensor) {
        return fmt::format("blk.{}.{}{}", layer, tensor, suffix);
    };
    list.linear(Part::ffn, name("ffn_gate"), w.gate, h.n_embd, n_ff, companions);
    list.linear(Part::ffn, name("ffn_up"), w.up, h.n_embd, n_ff, companions);
    list.linear(Part::ffn, name("ffn_down"), w.down, n_ff, h.n_embd, companions);
    list.mark_residual(name("ffn_down"));
}

void experts(const Hparams& h, int32_t layer, int64_t n_ff, MergedExperts merged, TensorList& list,
             Experts& w) {
    const auto name = [&](std::string_view tensor) { return layer_name(layer, tensor); };
    list.matrix(Part::ffn, Use::mul_mat, name("ffn_gate_inp.weight"), w.router,
                {h.n_embd, h.n_expert});
    if (merged == MergedExperts::allowed && list.has(name("ffn_gate_up_exps.weight"))) {
        list.experts(Part::ffn, name("ffn_gate_up_exps"), w.gate_up, h.n_embd, 2 * n_ff, h.n_expert,
                     Scale::refused);
    } else {
        list.experts(Part::ffn, name("ffn_gate_exps"), w.gate, h.n_embd, n_ff, h.n_expert);
        list.experts(Part::ffn, name("ffn_up_exps"), w.up, h.n_embd, n_ff, h.n_expert);
    }
    list.experts(Part::ffn, name("ffn_down_exps"), w.down, n_ff, h.n_embd, h.n_expert);
    list.mark_residual(name("ffn_down_exps"));
}

}  // namespace pleat
