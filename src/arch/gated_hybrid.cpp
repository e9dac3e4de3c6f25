#include "arch/gated_hybrid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "arch/common_keys.h"
#include "arch/tensors.h"
#include "base/error.h"

namespace pleat {
namespace {

constexpr std::string_view interval_key = "full_attention_interval";
constexpr std::string_view layers_key = "attention.recurrent_layers";

DeltaNetHparams read_delta_net(const Keys& keys) {
    DeltaNetHparams d;
    d.n_conv = keys.required("ssm.conv_kernel", 2, 256);
    d.head_dim = keys.required("ssm.state_size", 1, 4096);
    d.n_head_k = keys.required("ssm.group_count", 1, 1U << 16);
    d.n_head_v = keys.required("ssm.time_step_rank", 1, 1U << 16);
    if (d.n_head_v % d.n_head_k != 0) {
        bad_key(keys.file(), keys.full("ssm.time_step_rank"), fmt::format("{}", d.n_head_v),
                fmt::format("a multiple of ssm.group_count, {}", d.n_head_k));
    }
    const uint32_t inner = keys.required("ssm.inner_size", 1, UINT32_MAX);
    if (inner != d.n_embd_v()) {
        bad_key(keys.file(), keys.full("ssm.inner_size"), fmt::format("{}", inner),
                fmt::format("{} (state_size x time_step_rank)", d.n_embd_v()));
    }
    return d;
}

/// What ggml asserts of them, too: at most as many as the head has values, not all in the fourth.
std::array<int, 4> read_sections(const Keys& keys, uint32_t head_dim) {
    constexpr std::string_view key = "rope.dimension_sections";
    const auto values = keys.file().i32_array(keys.full(key));
    if (!values) keys.missing(key);
    if (values->size() != 4) {
        bad_key(keys.file(), keys.full(key), fmt::format("an array of {}", values->size()),
                "an array of 4 integers");
    }
    std::array<int, 4> sections{};
    int64_t sum = 0;
    for (size_t i = 0; i < 4; ++i) {
        const int32_t n = (*values)[i];
        if (n < 0 || n > (1 << 20)) {
            bad_key(keys.file(), keys.full(key), fmt::format("{} at place {}", n, i),
                    "numbers of rotated pairs, 0 or more");
        }
        sections.at(i) = n;
        sum += n;
    }
    if (sum == sections[3]) {
        bad_key(keys.file(), keys.full(key), "0 in its first three places",
                "at least one rotated pair there");
    }
    if (sum > head_dim) {
        bad_key(keys.file(), keys.full(key), fmt::format("{} in all", sum),
                fmt::format("at most the head size, {}", head_dim));
    }
    return sections;
}

std::vector<bool> recurrent_layers(const Keys& keys, const Hparams& h) {
    const uint32_t n_block = h.n_layer + h.n_layer_nextn;
    if (auto array = keys.file().boolean_per_layer(keys.full(layers_key), n_block)) return *array;
    const uint32_t interval = keys.optional(interval_key, 4, 1, max_dimension);
    std::vector<bool> recurrent;
    for (uint32_t i = 0; i < n_block; ++i) recurrent.push_back((i + 1) % interval != 0);
    return recurrent;
}

/// Which kind of layer the file's tensors are may not be another than the keys say.
void check_kind(int32_t layer, const TensorList& list, bool recurrent) {
    const std::string other = layer_name(layer, recurrent ? "attn_q_norm.weight" : "ssm_a");
    if (!list.has(other)) return;
    const gguf::File& file = list.file();
    const std::string arch = file.required_string("general.architecture");
    const std::string array = fmt::format("{}.{}", arch, layers_key);
    const std::string key =
        file.find(array) != nullptr ? array : fmt::format("{}.{}", arch, interval_key);
    fail("{}: layer {} is {} by key {}, but the file has tensor {}, which belongs to {}",
         file.path(), layer, recurrent ? "recurrent" : "an attention layer", key, other,
         recurrent ? "an attention layer" : "a recurrent one");
}

void delta_net_tensors(const Hparams& h, int32_t layer, TensorList& list, DeltaNet& w) {
    const DeltaNetHparams& d = *h.delta_net;
    const auto name = [&](std::string_view tensor) { return layer_name(layer, tensor); };
    const auto linear = [&](std::string_view tensor, Linear& target, int64_t n_in, int64_t n_out) {
        list.linear(Part::attention, name(tensor), target, n_in, n_out, only_scale);
    };
    linear("attn_qkv", w.qkv, h.n_embd, d.n_channels());
    linear("attn_gate", w.gate, h.n_embd, d.n_embd_v());
    list.matrix(Part::attention, Use::conv, name("ssm_conv1d.weight"), w.conv,
                {d.n_conv, d.n_channels()});
    linear("ssm_alpha", w.alpha, h.n_embd, d.n_head_v);
    linear("ssm_beta", w.beta, h.n_embd, d.n_head_v);
    list.vector(Part::attention, Use::add, name("ssm_dt.bias"), w.dt_bias, d.n_head_v);
    list.vector(Part::attention, Use::mul, name("ssm_a"), w.a, d.n_head_v);
    list.vector(Part::attention, Use::mul, name("ssm_norm.weight"), w.norm, d.head_dim);
    linear("ssm_out", w.output, d.n_embd_v(), h.n_embd);
    list.mark_residual(name("ssm_out"));
}

void gated_attention_tensors(const Hparams& h, int32_t layer, TensorList& list, Layer& w) {
    const LayerHparams& l = h.layers[static_cast<size_t>(layer)];
    const int64_t n_q = int64_t{l.n_head} * l.head_dim_k;
    const int64_t n_kv = int64_t{l.n_head_kv} * l.head_dim_k;
    const auto linear = [&](std::string_view tensor, Linear& target, int64_t n_out) {
        list.linear(Part::attention, layer_name(layer, tensor), target, h.n_embd, n_out,
                    bias_and_scale);
    };
    if (list.has(layer_name(layer, "attn_qkv.weight"))) {
        linear("attn_qkv", w.attn_qkv, 2 * n_q + 2 * n_kv);
    } else {
        linear("attn_q", w.attn_q, 2 * n_q);  // of every head its query, then its gate
        linear("attn_k", w.attn_k, n_kv);
        linear("attn_v", w.attn_v, n_kv);
    }
    qk_norms(h, layer, list, w);
    attention_output(h, layer, list, w, only_scale);
}

ggml_tensor* gated_attention(GraphBuilder& b, const Layer& w, const Pass& pass, ggml_tensor* x) {
    ggml_context* const c = b.ggml();
    const LayerHparams& h = b.hparams(pass);
    const int64_t dim = h.head_dim_k;
    const int64_t n_tokens = x->ne[1];
    const bool fused = w.attn_qkv.weight != nullptr;
    ggml_tensor* const queries = b.project(fused ? w.attn_qkv : w.attn_q, x);
    const auto half = [&](int64_t first) {
        return ggml_view_3d(c, queries, dim, h.n_head, n_tokens,
                            ggml_row_size(queries->type, 2 * dim), queries->nb[1],
                            ggml_row_size(queries->type, first));
    };
    const auto heads = [&](const Linear& linear, int64_t first_head) {
        if (!fused) return ggml_reshape_3d(c, b.project(linear, x), dim, h.n_head_kv, n_tokens);
        return ggml_view_3d(c, queries, dim, h.n_head_kv, n_tokens,
                            ggml_row_size(queries->type, dim), queries->nb[1],
                            ggml_row_size(queries->type, first_head * dim));
    };
    const int64_t n_head = h.n_head;
    const Qkv qkv{.q = b.rope(pass, b.rms_norm(half(0), w.attn_q_norm)),
                  .k = b.rope(pass, b.rms_norm(heads(w.attn_k, 2 * n_head), w.attn_k_norm)),
                  .v = heads(w.attn_v, 2 * n_head + h.n_head_kv)};
    const float scale = 1.0F / std::sqrt(static_cast<float>(dim));
    ggml_tensor* const out = b.attend(qkv, pass, scale);
    ggml_tensor* const gate = ggml_sigmoid(c, ggml_cont_2d(c, half(dim), dim * h.n_head, n_tokens));
    return b.project(w.attn_output, ggml_mul(c, out, gate));
}

}  // namespace

Hparams read_hybrid_keys(const Keys& keys) {
    Hparams h = read_common_keys(keys, Mtp::allowed);
    h.delta_net = read_delta_net(keys);
    const std::array<int, 4> sections = read_sections(keys, h.layers.front().head_dim_k);
    const std::vector<bool> recurrent = recurrent_layers(keys, h);
    for (size_t i = 0; i < h.layers.size(); ++i) {
        LayerHparams& layer = h.layers[i];
        layer.role = recurrent[i] ? Role::recurrent : Role::gated_attention;
        layer.rope.mode = GGML_ROPE_TYPE_IMROPE;
        layer.rope.sections = sections;
        if (layer.head_dim_v != layer.head_dim_k) {
            bad_key(keys.file(), keys.full("attention.value_length"),
                    fmt::format("{}", layer.head_dim_v),
                    fmt::format("{} (attention.key_length): the gate is as wide as the query",
                                layer.head_dim_k));
        }
    }
    return h;
}

std::vector<gguf::KeyValue> baked_hybrid_keys(const Hparams& h, const LayerPlan& plan) {
    std::vector<uint8_t> recurrent;
    for (const Pass& pass : plan) {
        const Role role = h.layers[static_cast<size_t>(pass.layer)].role;
        recurrent.push_back(role == Role::recurrent ? 1 : 0);
    }
    for (const uint8_t kind : {uint8_t{0}, uint8_t{1}}) {
        if (std::ranges::find(recurrent, kind) != recurrent.end()) continue;
        fail(
            "the path has no {} layer; stock runs no hybrid model without one, so this plan cannot "
            "be baked",
            kind == 1 ? "recurrent" : "attention");
    }
    return {{std::string(layers_key),
             gguf::Array{.type = gguf::ValueType::boolean, .items = std::move(recurrent)}}};
}

void hybrid_layer_tensors(const Hparams& h, int32_t layer, TensorList& list, Layer& w) {
    const bool recurrent = h.layers[static_cast<size_t>(layer)].role == Role::recurrent;
    check_kind(layer, list, recurrent);
    list.vector(Part::attention, Use::mul, layer_name(layer, "attn_norm.weight"), w.attn_norm,
                h.n_embd);
    if (recurrent) {
        delta_net_tensors(h, layer, list, w.delta_net.emplace());
    } else {
        gated_attention_tensors(h, layer, list, w);
    }
    // The FFN's own norm, despite its name.
    list.vector(Part::ffn, Use::mul, layer_name(layer, "post_attention_norm.weight"), w.ffn_norm,
                h.n_embd);
}

ggml_tensor* hybrid_attention(GraphBuilder& b, const Layer& w, const Pass& pass,
                              ggml_tensor* hidden) {
    ggml_tensor* const x = b.rms_norm(hidden, w.attn_norm);
    return w.delta_net ? b.delta_net(*w.delta_net, pass, x) : gated_attention(b, w, pass, x);
}

}  // namespace pleat
