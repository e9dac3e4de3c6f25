#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "arch/blocks.h"
#include "arch/common_keys.h"
#include "arch/gemma_keys.h"
#include "arch/rows.h"
#include "arch/tensors.h"
#include "base/error.h"

// Gemma 4 (E2B, E4B, 12B, 31B, 26B-A4B). Facts: docs/design/architectures/gemma4.md
namespace pleat {
namespace {

constexpr std::string_view arch_name = "gemma4";

void read_window_layers(const Keys& keys, Hparams& h) {
    h.n_swa = keys.required("attention.sliding_window", 1, 1U << 30);
    const uint32_t dim_k = keys.required("attention.key_length_swa", 1, max_dimension);
    const uint32_t dim_v = keys.required("attention.value_length_swa", 1, max_dimension);
    require_even_head(keys, "attention.key_length_swa", dim_k);
    const std::vector<bool> window = window_pattern(keys, h, 0);
    set_window_layers(keys, h, window);
    for (size_t i = 0; i < h.layers.size(); ++i) {
        LayerHparams& layer = h.layers[i];
        if (window[i]) {
            layer.head_dim_k = dim_k;
            layer.head_dim_v = dim_v;
            layer.rope.n_rot = read_n_rot(keys, "rope.dimension_count_swa",
                                          static_cast<uint32_t>(layer.rope.n_rot), dim_k);
            if (static_cast<uint32_t>(layer.rope.n_rot) > dim_k) {
                fail(
                    "{}: key {} is missing: the {} rotated dimensions of the full layers are more "
                    "than a window layer's head has, {}",
                    keys.file().path(), keys.full("rope.dimension_count_swa"), layer.rope.n_rot,
                    dim_k);
            }
        }
        if (layer.head_dim_v != layer.head_dim_k) {
            const std::string_view key =
                window[i] ? "attention.value_length_swa" : "attention.value_length";
            bad_key(keys.file(), keys.full(key), fmt::format("{}", layer.head_dim_v),
                    fmt::format("{}, the key length", layer.head_dim_k));
        }
    }
}

/// The last layers may read the K/V of the last two that own any: one of each kind.
void read_owners(const Keys& keys, Hparams& h) {
    const uint32_t n_shared = keys.optional("attention.shared_kv_layers", 0, 0, h.n_layer);
    const uint32_t n_own = h.n_layer - n_shared;
    for (uint32_t i = n_own; i < h.n_layer; ++i) {
        LayerHparams& layer = h.layers[i];
        layer.role = Role::shared_kv_attention;
        layer.kv_owner = static_cast<int32_t>(n_own) - (layer.window ? 2 : 1);
        const bool exists = layer.kv_owner >= 0;
        const LayerHparams& owner = h.layers[exists ? static_cast<size_t>(layer.kv_owner) : 0];
        if (exists && owner.window == layer.window && owner.n_head_kv == layer.n_head_kv) continue;
        fail("{}: key {} is {}, so layer {} would read the K/V of layer {}, which {}",
             keys.file().path(), keys.full("attention.shared_kv_layers"), n_shared, i,
             layer.kv_owner,
             !exists                        ? "does not exist"
             : owner.window != layer.window ? "has another kind of window"
                                            : "has another number of K/V heads");
    }
}

Hparams hparams(const gguf::File& file) {
    const Keys keys(file, arch_name);
    Hparams h = read_common_keys(keys);
    require_dense_ffn(keys, h);
    set_rope_mode(h, GGML_ROPE_TYPE_NEOX);
    read_window_layers(keys, h);
    read_owners(keys, h);
    h.logit_softcap = read_softcap(keys, 30.0F);
    h.n_embd_per_layer = keys.required("embedding_length_per_layer_input", 0, max_dimension);
    if (h.n_expert > 0) require_experts(keys, h);
    return h;
}

void global_tensors(const Hparams& h, TensorList& list, Globals& g) {
    embedding_and_head(h, list, g);
    for (const LayerHparams& layer : h.layers) {
        if (layer.window) continue;
        list.vector(Part::output, Use::rope_factors, "rope_freqs.weight", g.rope_factors,
                    layer.head_dim_k / 2);
        break;
    }
    if (h.n_embd_per_layer == 0) return;
    const int64_t n_all = int64_t{h.n_embd_per_layer} * h.n_layer;
    list.matrix(Part::embedding, Use::get_rows, "per_layer_token_embd.weight", g.layer_token_embd,
                {n_all, h.n_vocab});
    list.linear(Part::embedding, "per_layer_model_proj", g.layer_embd_proj, h.n_embd, n_all,
                nothing);
    list.vector(Part::embedding, Use::mul, "per_layer_proj_norm.weight", g.layer_embd_norm,
                h.n_embd_per_layer);
    list.mark_layer_slices("per_layer_token_embd.weight", 0);
    list.mark_layer_slices("per_layer_model_proj.weight", 1);
}

void attention_tensors(const Hparams& h, int32_t layer, TensorList& list, Layer& w) {
    const LayerHparams& l = h.layers[static_cast<size_t>(layer)];
    const auto name = [&](std::string_view tensor) { return layer_name(layer, tensor); };
    const int64_t n_q = int64_t{l.n_head} * l.head_dim_k;
    const int64_t n_kv = int64_t{l.n_head_kv} * l.head_dim_k;
    const auto linear = [&](std::string_view tensor, Linear& target, int64_t n_out, Need need) {
        list.linear(Part::attention, name(tensor), target, h.n_embd, n_out, only_scale, need);
    };
    list.vector(Part::attention, Use::mul, name("attn_norm.weight"), w.attn_norm, h.n_embd);
    list.vector(Part::attention, Use::mul, name("attn_q_norm.weight"), w.attn_q_norm, l.head_dim_k);
    const bool owner = l.role != Role::shared_kv_attention;
    if (list.has(name("attn_qkv.weight"))) {
        linear("attn_qkv", w.attn_qkv, n_q + 2 * n_kv, Need::required);
    } else {
        linear("attn_q", w.attn_q, n_q, Need::required);
        if (owner) {
            linear("attn_k", w.attn_k, n_kv, Need::required);
            linear("attn_v", w.attn_v, n_kv, Need::optional);  // else K's projection serves both
        }
    }
    if (owner) {
        list.vector(Part::attention, Use::mul, name("attn_k_norm.weight"), w.attn_k_norm,
                    l.head_dim_k);
    } else {
        for (const char* unused : {"attn_k.weight", "attn_v.weight", "attn_k_norm.weight",
                                   "attn_k.scale", "attn_v.scale"}) {
            list.pass_over(name(unused));
        }
    }
    attention_output(h, layer, list, w, only_scale);
    list.vector(Part::attention, Use::mul, name("post_attention_norm.weight"), w.attn_post_norm,
                h.n_embd);
    list.mark_post_norm(name("post_attention_norm"));
}

void ffn_tensors(const Hparams& h, int32_t layer, TensorList& list, Layer& w) {
    const auto norm = [&](std::string_view tensor, ggml_tensor*& target) {
        list.vector(Part::ffn, Use::mul, layer_name(layer, tensor), target, h.n_embd);
    };
    norm("ffn_norm.weight", w.ffn_norm);
    gated_ffn(h, layer, "", h.layers[static_cast<size_t>(layer)].n_ff, list, w.ffn, only_scale);
    if (h.n_expert > 0 && list.has(layer_name(layer, "ffn_gate_inp.weight"))) {
        experts(h, layer, h.n_ff_exp, MergedExperts::allowed, list, w.experts.emplace());
        norm("ffn_gate_inp.scale", w.experts->router_scale);
        norm("pre_ffw_norm_2.weight", w.experts_norm);
        norm("post_ffw_norm_1.weight", w.dense_post_norm);
        norm("post_ffw_norm_2.weight", w.experts_post_norm);
    }
    norm("post_ffw_norm.weight", w.ffn_post_norm);
    list.mark_post_norm(layer_name(layer, "post_ffw_norm"));
}

void layer_tensors(const Hparams& h, int32_t layer, TensorList& list, Layer& w) {
    attention_tensors(h, layer, list, w);
    ffn_tensors(h, layer, list, w);
    const auto name = [&](std::string_view tensor) { return layer_name(layer, tensor); };
    if (h.n_embd_per_layer > 0) {
        LayerEmbedding& e = w.embedding.emplace();
        list.linear(Part::other, name("inp_gate"), e.gate, h.n_embd, h.n_embd_per_layer, nothing);
        list.linear(Part::other, name("proj"), e.output, h.n_embd_per_layer, h.n_embd, nothing);
        list.vector(Part::other, Use::mul, name("post_norm.weight"), e.norm, h.n_embd);
    }
    list.vector(Part::other, Use::mul, name("layer_output_scale.weight"), w.output_scale, 1,
                Need::optional);
}

/// The embeddings of all layers at once, from the token and from the stream before the layers.
ggml_tensor* layer_embeddings(GraphBuilder& b, ggml_tensor* hidden) {
    ggml_context* const c = b.ggml();
    const Hparams& h = b.hparams();
    const Globals& g = b.globals();
    const int64_t n_tokens = hidden->ne[1];
    const auto width = static_cast<float>(h.n_embd_per_layer);
    const auto by_layer = [&](ggml_tensor* t, float scale) {
        return ggml_reshape_3d(c, ggml_scale(c, t, scale), h.n_embd_per_layer, h.n_layer, n_tokens);
    };
    ggml_tensor* const looked_up =
        by_layer(ggml_get_rows(c, g.layer_token_embd, b.tokens()), std::sqrt(width));
    ggml_tensor* const projected =
        b.rms_norm(by_layer(b.project(g.layer_embd_proj, hidden),
                            1.0F / std::sqrt(static_cast<float>(h.n_embd))),
                   g.layer_embd_norm);
    ggml_tensor* const sum =
        ggml_scale(c, ggml_add(c, projected, looked_up), 1.0F / std::sqrt(2.0F));
    return ggml_cont(c, ggml_permute(c, sum, 0, 2, 1, 3));
}

ggml_tensor* embed(GraphBuilder& b) {
    ggml_tensor* const hidden = embed_tokens_scaled(b);
    if (b.hparams().n_embd_per_layer > 0) b.set_layer_embeddings(layer_embeddings(b, hidden));
    return hidden;
}

/// K and V of an owner. V is normed without a weight and never turned; where the layer has no
/// projection of its own for it, it is what K is before its norm.
void add_kv(GraphBuilder& b, const Layer& w, const Pass& pass, ggml_tensor* x, Qkv& qkv) {
    const LayerHparams& h = b.hparams(pass);
    if (qkv.k == nullptr) {
        const auto heads = [&](const Linear& linear) {
            return ggml_reshape_3d(b.ggml(), b.project(linear, x), h.head_dim_k, h.n_head_kv,
                                   x->ne[1]);
        };
        qkv.k = heads(w.attn_k);
        qkv.v = w.attn_v.weight == nullptr ? qkv.k : heads(w.attn_v);
    }
    qkv.k = b.rope(pass, b.rms_norm(qkv.k, w.attn_k_norm));
    qkv.v = b.rms_norm(qkv.v);
}

ggml_tensor* attention(GraphBuilder& b, const Layer& w, const Pass& pass, ggml_tensor* hidden) {
    const LayerHparams& h = b.hparams(pass);
    ggml_tensor* const x = b.rms_norm(hidden, w.attn_norm);
    Qkv qkv;
    if (w.attn_qkv.weight != nullptr) {
        qkv = b.project_qkv(w, pass, x);
    } else {
        qkv.q = ggml_reshape_3d(b.ggml(), b.project(w.attn_q, x), h.head_dim_k, h.n_head, x->ne[1]);
    }
    qkv.q = b.rope(pass, b.rms_norm(qkv.q, w.attn_q_norm));
    if (h.role == Role::shared_kv_attention) {
        qkv.k = nullptr;
        qkv.v = nullptr;
    } else {
        add_kv(b, w, pass, x, qkv);
    }
    return b.rms_norm(b.project(w.attn_output, b.attend(qkv, pass, 1.0F)), w.attn_post_norm);
}

/// The dense FFN and the experts side by side, each on a norm of its own of the same stream.
ggml_tensor* expert_ffn(GraphBuilder& b, const Layer& w, ggml_tensor* hidden) {
    ggml_context* const c = b.ggml();
    const float scale = 1.0F / std::sqrt(static_cast<float>(b.hparams().n_embd));
    ggml_tensor* const router_input =
        ggml_mul(c, ggml_scale(c, b.rms_norm(hidden), scale), w.experts->router_scale);
    ggml_tensor* const dense = b.gated_ffn(w.ffn, Activation::gelu, b.rms_norm(hidden, w.ffn_norm));
    ggml_tensor* const routed =
        b.experts(*w.experts, Activation::gelu, b.rms_norm(hidden, w.experts_norm),
                  b.route(*w.experts, router_input));
    return ggml_add(c, b.rms_norm(dense, w.dense_post_norm),
                    b.rms_norm(routed, w.experts_post_norm));
}

ggml_tensor* ffn(GraphBuilder& b, const Layer& w, const Pass&, ggml_tensor* hidden) {
    ggml_tensor* const out =
        w.experts ? expert_ffn(b, w, hidden)
                  : b.gated_ffn(w.ffn, Activation::gelu, b.rms_norm(hidden, w.ffn_norm));
    return b.rms_norm(out, w.ffn_post_norm);
}

/// Belongs to neither sub-layer, so it stays where both are dropped.
ggml_tensor* after(GraphBuilder& b, const Layer& w, const Pass& pass, ggml_tensor* hidden) {
    ggml_context* const c = b.ggml();
    if (w.embedding) {
        ggml_tensor* const gate = ggml_gelu(c, b.project(w.embedding->gate, hidden));
        ggml_tensor* const own = ggml_mul(c, gate, b.layer_embedding(pass));
        hidden =
            ggml_add(c, hidden, b.rms_norm(b.project(w.embedding->output, own), w.embedding->norm));
    }
    return w.output_scale == nullptr ? hidden : ggml_mul(c, hidden, w.output_scale);
}

/// Stock finds a consumer's owner by counting layers: consumers come last, all of one kind read one
/// owner, and the two owners stand right before them.
std::vector<gguf::KeyValue> baked_keys(const Hparams& h, const LayerPlan& plan) {
    const auto layer_of = [&](size_t pass) -> const LayerHparams& {
        return h.layers[static_cast<size_t>(plan[pass].layer)];
    };
    const auto consumes = [&](size_t pass) {
        return layer_of(pass).role == Role::shared_kv_attention;
    };
    size_t n_own = plan.size();
    while (n_own > 0 && consumes(n_own - 1)) --n_own;
    if (n_own < 2) {
        fail(
            "the path begins with {} of layers that own K/V; stock runs no model with fewer than "
            "2, so this plan cannot be baked",
            n_own == 1 ? "1 pass" : "no pass");
    }
    for (size_t i = 0; i < plan.size(); ++i) {
        if (!consumes(i)) continue;
        if (i < n_own) {
            fail(
                "pass {} (layer {}) reads the K/V of layer {} and is not among the last passes; "
                "stock knows such layers only at the end, so this plan cannot be baked",
                i, plan[i].layer, layer_of(i).kv_owner);
        }
        const size_t distance = layer_of(i).window ? 2 : 1;
        const bool found =
            n_own >= distance && plan[n_own - distance].layer == layer_of(i).kv_owner;
        if (found && (!plan[i].attention || plan[n_own - distance].slot == plan[i].slot)) continue;
        fail(
            "pass {} (layer {}) reads the K/V of layer {}; stock would read those of pass {}, "
            "counting back from the first such layer, so this plan cannot be baked",
            i, plan[i].layer, layer_of(i).kv_owner,
            static_cast<int64_t>(n_own) - static_cast<int64_t>(distance));
    }
    std::vector<gguf::KeyValue> keys = baked_window_pattern(h, plan);
    const auto has_no_window = [&](const Pass& pass) {
        return !h.layers[static_cast<size_t>(pass.layer)].window;
    };
    const bool had_full =
        std::ranges::any_of(h.layers, [](const LayerHparams& layer) { return !layer.window; });
    if (had_full && std::ranges::none_of(plan, has_no_window)) {
        fail(
            "the path has no layer with full attention; stock takes no rope_freqs.weight then, so "
            "this plan cannot be baked");
    }
    keys.push_back({"attention.shared_kv_layers", static_cast<uint32_t>(plan.size() - n_own)});
    return keys;
}

}  // namespace

const Architecture& gemma4_architecture() {
    static const Architecture row{
        .name = arch_name,
        .hparams = hparams,
        .global_tensors = global_tensors,
        .layer_tensors = layer_tensors,
        .embed = embed,
        .attention = attention,
        .ffn = ffn,
        .after = after,
        .final_norm = final_norm,
        .logits = logits,
        .baked_keys = baked_keys,
    };
    return row;
}

}  // namespace pleat
