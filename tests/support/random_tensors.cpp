#include "support/random_tensors.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <string_view>

#include "support/random_shape.h"

namespace pleat::test {
namespace {

/// The list of a model's tensors grows in the order of the file.
class TensorList {
  public:
    explicit TensorList(const RandomModel& model) : model_(model), scales_(model.scales) {}

    void norm(const std::string& name) { norm(name, model_.n_embd); }
    void norm(const std::string& name, int64_t count, float mean = 1) {
        tensors_.push_back(
            {.name = name + ".weight", .ne = {count}, .mean = mean, .deviation = 0.1F * mean});
    }
    /// With deviation 1/sqrt(fan-in) rows of unit variance keep it.
    void matrix(const std::string& name, std::vector<int64_t> ne, double gain = 1) {
        unquantised(name, std::move(ne), gain);
        tensors_.back().quantised = true;
    }
    void unquantised(const std::string& name, std::vector<int64_t> ne, double gain = 1) {
        const auto deviation =
            static_cast<float>(gain / std::sqrt(static_cast<double>(ne.front())));
        tensors_.push_back({.name = name + ".weight", .ne = std::move(ne), .deviation = deviation});
    }
    void factors(const std::string& name, int64_t count, float low, float high) {
        tensors_.push_back({.name = name,
                            .ne = {count},
                            .mean = (low + high) / 2,
                            .deviation = (high - low) / 2,
                            .even = true});
    }
    void bias(const std::string& name, int64_t count) {
        if (!model_.biases) return;
        tensors_.push_back({.name = name + ".bias", .ne = {count}, .deviation = 0.1F});
    }
    void scale(const std::string& name, int64_t count) {
        if (scales_) factors(name + ".scale", count, 0.5F, 1.5F);
    }
    void no_more_scales() { scales_ = false; }
    /// A matrix of a layer, with the scale that the model's settings give it.
    void projection(const std::string& name, int64_t in, int64_t out) {
        matrix(name, {in, out});
        scale(name, 1);
    }
    void biased_projection(const std::string& name, int64_t in, int64_t out) {
        matrix(name, {in, out});
        bias(name, out);
        scale(name, 1);
    }
    void experts(const std::string& name, int64_t in, int64_t out) {
        matrix(name, {in, out, model_.n_expert});
        scale(name, model_.n_expert);
    }

    std::vector<RandomTensor> take() { return std::move(tensors_); }

  private:
    const RandomModel& model_;
    bool scales_;
    std::vector<RandomTensor> tensors_;
};

// ---- pieces of layers ----

void list_qkv(TensorList& list, const RandomModel& model, const std::string& prefix) {
    const int64_t n_embd = model.n_embd;
    const int64_t n_q = int64_t{model.n_head} * model.head_size();
    const int64_t n_kv = int64_t{model.n_head_kv} * model.head_size();
    if (model.fused_qkv) {
        list.biased_projection(prefix + "attn_qkv", n_embd, n_q + 2 * n_kv);
    } else {
        list.biased_projection(prefix + "attn_q", n_embd, n_q);
        list.biased_projection(prefix + "attn_k", n_embd, n_kv);
        list.biased_projection(prefix + "attn_v", n_embd, n_kv);
    }
}

void list_qk_norms(TensorList& list, const RandomModel& model, const std::string& prefix) {
    list.norm(prefix + "attn_q_norm", model.head_size());
    list.norm(prefix + "attn_k_norm", model.head_size());
}

void list_attn_output(TensorList& list, const RandomModel& model, const std::string& prefix) {
    list.projection(prefix + "attn_output", int64_t{model.n_head} * model.head_size(),
                    model.n_embd);
}

void list_ffn(TensorList& list, const RandomModel& model, const std::string& prefix, int n_ff) {
    list.projection(prefix + "ffn_gate", model.n_embd, n_ff);
    list.projection(prefix + "ffn_up", model.n_embd, n_ff);
    list.projection(prefix + "ffn_down", n_ff, model.n_embd);
}

void list_experts(TensorList& list, const RandomModel& model, const std::string& prefix) {
    const int64_t n_ff = n_ff_exp(model);
    if (model.merged_experts) {
        list.matrix(prefix + "ffn_gate_up_exps", {model.n_embd, 2 * n_ff, model.n_expert});
    } else {
        list.experts(prefix + "ffn_gate_exps", model.n_embd, n_ff);
        list.experts(prefix + "ffn_up_exps", model.n_embd, n_ff);
    }
    list.experts(prefix + "ffn_down_exps", n_ff, model.n_embd);
}

void list_router(TensorList& list, const RandomModel& model, const std::string& prefix) {
    list.unquantised(prefix + "ffn_gate_inp", {model.n_embd, model.n_expert});
}

// ---- the layers of each architecture ----

void list_llama(TensorList& list, const RandomModel& model, const std::string& prefix, int) {
    const int64_t n_q = int64_t{model.n_head} * model.head_size();
    list.norm(prefix + "attn_norm");
    list_qkv(list, model, prefix);
    list.biased_projection(prefix + "attn_output", n_q, model.n_embd);
    list.norm(prefix + "ffn_norm");
    if (model.n_expert > 0) {
        list_router(list, model, prefix);
        list_experts(list, model, prefix);
    } else {
        list.biased_projection(prefix + "ffn_gate", model.n_embd, model.n_ff);
        list.biased_projection(prefix + "ffn_up", model.n_embd, model.n_ff);
        list.biased_projection(prefix + "ffn_down", model.n_ff, model.n_embd);
    }
}

void list_qwen2(TensorList& list, const RandomModel& model, const std::string& prefix, int) {
    list.norm(prefix + "attn_norm");
    list_qkv(list, model, prefix);
    list_attn_output(list, model, prefix);
    list.norm(prefix + "ffn_norm");
    list_ffn(list, model, prefix, model.n_ff);
}

/// qwen3 and qwen3moe.
void list_qwen3(TensorList& list, const RandomModel& model, const std::string& prefix, int) {
    list.norm(prefix + "attn_norm");
    list_qkv(list, model, prefix);
    list_qk_norms(list, model, prefix);
    list_attn_output(list, model, prefix);
    list.norm(prefix + "ffn_norm");
    if (model.n_expert > 0) {
        list_router(list, model, prefix);
        list_experts(list, model, prefix);
    } else {
        list_ffn(list, model, prefix, model.n_ff);
    }
}

void list_gemma3(TensorList& list, const RandomModel& model, const std::string& prefix, int) {
    list.norm(prefix + "attn_norm");
    list_qkv(list, model, prefix);
    list_qk_norms(list, model, prefix);
    list_attn_output(list, model, prefix);
    list.norm(prefix + "post_attention_norm");
    list.norm(prefix + "ffn_norm");
    list_ffn(list, model, prefix, model.n_ff);
    list.norm(prefix + "post_ffw_norm");
}

void list_gemma4_attention(TensorList& list, const RandomModel& model, const std::string& prefix,
                           int layer) {
    const int64_t n_embd = model.n_embd;
    const int head_size = test::head_size(model, layer);
    const int64_t n_q = int64_t{model.n_head} * head_size;
    const int64_t n_kv = int64_t{n_head_kv(model, layer)} * head_size;
    const bool has_k = owns_kv(model, layer) || model.unused_kv;
    // The attention's scale is 1: with these norms scores still have unit variance.
    const auto norm_mean = static_cast<float>(std::pow(head_size, -0.25));
    if (model.fused_qkv) {
        list.projection(prefix + "attn_qkv", n_embd, n_q + 2 * n_kv);
    } else {
        list.projection(prefix + "attn_q", n_embd, n_q);
        if (has_k) list.projection(prefix + "attn_k", n_embd, n_kv);
        if (has_k && !(model.v_from_k && !is_window(model, layer))) {
            list.projection(prefix + "attn_v", n_embd, n_kv);
        }
    }
    list.norm(prefix + "attn_q_norm", head_size, norm_mean);
    if (has_k) list.norm(prefix + "attn_k_norm", head_size, norm_mean);
    list.projection(prefix + "attn_output", n_q, n_embd);
}

void list_gemma4_experts(TensorList& list, const RandomModel& model, const std::string& prefix) {
    list_router(list, model, prefix);
    // The graph divides the router's input by sqrt(n_embd).
    const float gain = std::sqrt(static_cast<float>(model.n_embd));
    list.factors(prefix + "ffn_gate_inp.scale", model.n_embd, 0.5F * gain, 1.5F * gain);
    list.norm(prefix + "pre_ffw_norm_2");
    list.norm(prefix + "post_ffw_norm_1");
    list.norm(prefix + "post_ffw_norm_2");
    list_experts(list, model, prefix);
}

void list_gemma4(TensorList& list, const RandomModel& model, const std::string& prefix, int layer) {
    list.norm(prefix + "attn_norm");
    list_gemma4_attention(list, model, prefix, layer);
    list.norm(prefix + "post_attention_norm");
    list.norm(prefix + "ffn_norm");
    list_ffn(list, model, prefix, n_ff(model, layer));
    if (model.n_expert > 0) list_gemma4_experts(list, model, prefix);
    list.norm(prefix + "post_ffw_norm");
    if (model.layer_output_scale) {
        list.factors(prefix + "layer_output_scale.weight", 1, 0.6F, 1.2F);
    }
    if (model.n_embd_per_layer > 0) {
        list.matrix(prefix + "inp_gate", {model.n_embd, model.n_embd_per_layer});
        list.matrix(prefix + "proj", {model.n_embd_per_layer, model.n_embd});
        list.norm(prefix + "post_norm");
    }
}

void list_gated_attention(TensorList& list, const RandomModel& model, const std::string& prefix) {
    const int64_t n_q = int64_t{model.n_head} * model.head_size();
    const int64_t n_kv = int64_t{model.n_head_kv} * model.head_size();
    const int64_t n_q_gate = 2 * n_q;
    if (model.fused_qkv) {
        list.biased_projection(prefix + "attn_qkv", model.n_embd, n_q_gate + 2 * n_kv);
    } else {
        list.biased_projection(prefix + "attn_q", model.n_embd, n_q_gate);
        list.biased_projection(prefix + "attn_k", model.n_embd, n_kv);
        list.biased_projection(prefix + "attn_v", model.n_embd, n_kv);
    }
    list_qk_norms(list, model, prefix);
    list_attn_output(list, model, prefix);
}

void list_delta_net(TensorList& list, const RandomModel& model, const std::string& prefix) {
    const int64_t n_key = int64_t{model.ssm_state_size} * model.ssm_n_group;
    const int64_t n_value = int64_t{model.ssm_state_size} * model.ssm_n_head;
    const int64_t n_channel = 2 * n_key + n_value;
    list.projection(prefix + "attn_qkv", model.n_embd, n_channel);
    list.projection(prefix + "attn_gate", model.n_embd, n_value);
    list.unquantised(prefix + "ssm_conv1d", {model.ssm_conv_kernel, n_channel});
    list.projection(prefix + "ssm_alpha", model.n_embd, model.ssm_n_head);
    list.projection(prefix + "ssm_beta", model.n_embd, model.ssm_n_head);
    // With these two a token keeps between a quarter and nearly all of the state.
    list.factors(prefix + "ssm_dt.bias", model.ssm_n_head, -1, 1);
    list.factors(prefix + "ssm_a", model.ssm_n_head, -1.5F, -0.05F);
    list.norm(prefix + "ssm_norm", model.ssm_state_size);
    list.projection(prefix + "ssm_out", n_value, model.n_embd);
}

void list_shared_expert(TensorList& list, const RandomModel& model, const std::string& prefix) {
    const int n_ff = model.n_ff_shexp == 0 ? model.n_ff : model.n_ff_shexp;
    list.unquantised(prefix + "ffn_gate_inp_shexp", {model.n_embd});
    list.projection(prefix + "ffn_gate_shexp", model.n_embd, n_ff);
    list.projection(prefix + "ffn_up_shexp", model.n_embd, n_ff);
    list.projection(prefix + "ffn_down_shexp", n_ff, model.n_embd);
}

void list_mtp(TensorList& list, const RandomModel& model, const std::string& prefix) {
    list.matrix(prefix + "nextn.eh_proj", {2 * int64_t{model.n_embd}, model.n_embd});
    list.norm(prefix + "nextn.enorm");
    list.norm(prefix + "nextn.hnorm");
    list.norm(prefix + "nextn.shared_head_norm");
}

/// qwen35 and qwen35moe.
void list_qwen35(TensorList& list, const RandomModel& model, const std::string& prefix, int layer) {
    const bool is_mtp = layer == model.n_layer;
    if (is_mtp) list.no_more_scales();  // stock takes none here
    list.norm(prefix + "attn_norm");
    if (is_recurrent(model, layer)) {
        list_delta_net(list, model, prefix);
    } else {
        list_gated_attention(list, model, prefix);
    }
    list.norm(prefix + "post_attention_norm");
    if (model.n_expert > 0) {
        list_router(list, model, prefix);
        list_experts(list, model, prefix);
        list_shared_expert(list, model, prefix);
    } else {
        list_ffn(list, model, prefix, model.n_ff);
    }
    if (is_mtp) list_mtp(list, model, prefix);
}

using ListLayer = void (*)(TensorList&, const RandomModel&, const std::string& prefix, int layer);

ListLayer layer_of(const std::string& architecture) {
    static const std::map<std::string_view, ListLayer> table{
        {"llama", list_llama},    {"qwen2", list_qwen2},     {"qwen3", list_qwen3},
        {"qwen3moe", list_qwen3}, {"gemma3", list_gemma3},   {"gemma4", list_gemma4},
        {"qwen35", list_qwen35},  {"qwen35moe", list_qwen35}};
    return table.at(architecture);
}

// ---- what belongs to no layer ----

// The head sees rows of unit variance, so its gain is the spread of the logits.
constexpr double logit_spread = 2;

void list_input(TensorList& list, const RandomModel& model) {
    const std::vector<int64_t> vocab_shape{model.n_embd, model.n_vocab};
    // Gemma multiplies the embedding by sqrt(n_embd).
    const double unit_embedding =
        is_gemma(model) ? 1 : std::sqrt(static_cast<double>(model.n_embd));
    list.matrix("token_embd", vocab_shape, model.tied ? logit_spread : unit_embedding);
    if (model.n_embd_per_layer > 0) {
        const int64_t width = int64_t{model.n_embd_per_layer} * model.n_layer;
        // The graph multiplies these rows by sqrt(n_embd_per_layer) and divides the projection by
        // sqrt(n_embd).
        list.matrix("per_layer_token_embd", {width, model.n_vocab},
                    std::sqrt(static_cast<double>(model.n_layer)));
        list.matrix("per_layer_model_proj", {model.n_embd, width},
                    std::sqrt(static_cast<double>(model.n_embd)));
        list.norm("per_layer_proj_norm", model.n_embd_per_layer);
    }
}

bool has_full_layer(const RandomModel& model) {
    for (int i = 0; i < model.n_layer; ++i) {
        if (!is_window(model, i)) return true;
    }
    return false;
}

void list_rope(TensorList& list, const RandomModel& model) {
    const int64_t n_factors = model.head_size() / 2;
    if (model.rope_freqs || (model.architecture == "gemma4" && has_full_layer(model))) {
        list.factors("rope_freqs.weight", n_factors, 1, 8);
    }
    if (model.rope_scaling == "longrope") {
        list.factors("rope_factors_long.weight", n_factors, 1, 2 * model.rope_factor);
        list.factors("rope_factors_short.weight", n_factors, 1, 1.5F);
    }
}

void list_output(TensorList& list, const RandomModel& model) {
    list.norm("output_norm");
    if (!model.tied) list.matrix("output", {model.n_embd, model.n_vocab}, logit_spread);
    if (model.architecture == "qwen2") list.bias("output", model.n_vocab);
}

}  // namespace

size_t RandomTensor::count() const {
    return static_cast<size_t>(
        std::accumulate(ne.begin(), ne.end(), int64_t{1}, std::multiplies<>()));
}

std::vector<RandomTensor> list_tensors(const RandomModel& model) {
    TensorList list(model);
    list_input(list, model);
    list_rope(list, model);
    const ListLayer list_layer = layer_of(model.architecture);
    for (int i = 0; i < n_block(model); ++i) {
        list_layer(list, model, fmt::format("blk.{}.", i), i);
    }
    list_output(list, model);
    return list.take();
}

}  // namespace pleat::test
