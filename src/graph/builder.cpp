#include "graph/builder.h"

#include <algorithm>

#include "base/error.h"

namespace pleat {
namespace {

/// Nodes and leaves a graph may have: generous per pass, since a full graph aborts inside ggml.
size_t node_capacity(const LayerPlan& plan, const Hparams& hparams) {
    return 256 + plan.size() * (96 + 4 * size_t{hparams.n_expert_used});
}

}  // namespace

GraphBuilder::GraphBuilder(const Model& model, const LayerPlan& plan, const KvCache& full,
                           const KvCache& window, const GraphSettings& settings,
                           const GraphShape& shape)
    : model_(model), plan_(plan), full_(full), window_(window), settings_(settings) {
    const size_t capacity = node_capacity(plan, model.hparams());
    graph_.shape = shape;
    graph_.context.reset(ggml_init({.mem_size = capacity * ggml_tensor_overhead() +
                                                ggml_graph_overhead_custom(capacity, false),
                                    .mem_buffer = nullptr,
                                    .no_alloc = true}));
    if (!graph_.context) fail("out of memory for a graph of {} passes", plan.size());
    c_ = graph_.context.get();
    graph_.nodes = ggml_new_graph_custom(c_, capacity, false);
}

Graph GraphBuilder::build() {
    graph_.tokens = input(GGML_TYPE_I32, graph_.shape.n_tokens);
    graph_.positions = input(GGML_TYPE_I32, graph_.shape.n_tokens);
    graph_.output_rows = input(GGML_TYPE_I32, graph_.shape.n_outputs);
    add_kv_inputs(graph_.full, full_, graph_.shape.n_kv_full);
    add_kv_inputs(graph_.window, window_, graph_.shape.n_kv_window);
    if (settings_.rotation_k > 0) {
        graph_.rotation_k = input(GGML_TYPE_F32, settings_.rotation_k, settings_.rotation_k);
    }
    if (settings_.rotation_v > 0) {
        graph_.rotation_v = input(GGML_TYPE_F32, settings_.rotation_v, settings_.rotation_v);
    }

    ggml_tensor* hidden = arch().embed(*this);
    for (size_t i = 0; i < plan_.size(); ++i) {  // two passes may compare equal: "last" is a place
        hidden = apply_pass(plan_[i], hidden, i + 1 == plan_.size());
    }
    graph_.hidden = arch().final_norm(*this, hidden);
    ggml_set_output(graph_.hidden);
    graph_.logits = arch().logits(*this, graph_.hidden);
    ggml_set_output(graph_.logits);
    ggml_build_forward_expand(graph_.nodes, graph_.logits);
    return std::move(graph_);
}

ggml_tensor* GraphBuilder::apply_pass(const Pass& pass, ggml_tensor* hidden, bool last) {
    const Layer& w = layer(pass);
    if (pass.attention) {
        hidden = add_scaled(hidden, arch().attention(*this, w, pass, hidden), pass.scale);
    }
    // Where stock leaves out the rows nobody asked for: kernels must see the same row counts.
    if (last) hidden = select_outputs(hidden);
    if (pass.ffn) {
        hidden = add_scaled(hidden, arch().ffn(*this, w, pass, hidden), pass.scale);
    }
    return hidden;
}

ggml_tensor* GraphBuilder::input(ggml_type type, int64_t ne0, int64_t ne1, int64_t ne2,
                                 int64_t ne3) {
    ggml_tensor* const tensor = ggml_new_tensor_4d(c_, type, ne0, ne1, ne2, ne3);
    ggml_set_input(tensor);
    return tensor;
}

void GraphBuilder::add_kv_inputs(KvInputs& inputs, const KvCache& cache, uint32_t n_kv) {
    if (cache.empty()) return;
    const GraphShape& shape = graph_.shape;
    inputs.n_kv = n_kv;
    inputs.k_cells = input(GGML_TYPE_I64, shape.n_tokens);
    const int64_t v_rows = settings_.flash_attention ? 1 : cache.n_embd_v();
    inputs.v_cells = input(GGML_TYPE_I64, shape.n_tokens * v_rows);
    inputs.mask = input(settings_.flash_attention ? GGML_TYPE_F16 : GGML_TYPE_F32, n_kv,
                        shape.n_tokens / shape.n_streams, 1, shape.n_streams);
}

ggml_tensor* GraphBuilder::embed_tokens() {
    return ggml_get_rows(c_, globals().token_embd, graph_.tokens);
}

ggml_tensor* GraphBuilder::rms_norm(ggml_tensor* x, ggml_tensor* weight) {
    // Next to each other, so that the backend runs the two as one kernel.
    return ggml_mul(c_, ggml_rms_norm(c_, x, hparams().norm_eps), weight);
}

ggml_tensor* GraphBuilder::project(const Linear& linear, ggml_tensor* x) {
    ggml_tensor* y = ggml_mul_mat(c_, linear.weight, x);
    if (linear.scale != nullptr) y = ggml_mul(c_, y, linear.scale);
    if (linear.bias != nullptr) y = ggml_add(c_, y, linear.bias);
    return y;
}

ggml_tensor* GraphBuilder::project_ffn(const Linear& linear, ggml_tensor* x) {
    ggml_tensor* y = ggml_mul_mat(c_, linear.weight, x);
    if (linear.bias != nullptr) y = ggml_add(c_, y, linear.bias);
    if (linear.scale != nullptr) y = ggml_mul(c_, y, linear.scale);
    return y;
}

ggml_tensor* GraphBuilder::swiglu_ffn(const Layer& w, ggml_tensor* x) {
    ggml_tensor* const up = project_ffn(w.ffn_up, x);
    ggml_tensor* const gate = project_ffn(w.ffn_gate, x);
    return project_ffn(w.ffn_down, ggml_swiglu_split(c_, gate, up));
}

ggml_tensor* GraphBuilder::add_scaled(ggml_tensor* hidden, ggml_tensor* added, float scale) {
    if (scale != 1.0F) added = ggml_scale(c_, added, scale);
    return ggml_add(c_, added, hidden);
}

ggml_tensor* GraphBuilder::select_outputs(ggml_tensor* hidden) {
    return ggml_get_rows(c_, hidden, graph_.output_rows);
}

}  // namespace pleat
