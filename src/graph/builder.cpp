#include "graph/builder.h"

#include <ggml-backend.h>

#include <algorithm>

#include "base/error.h"

namespace pleat {
namespace {

/// Nodes and leaves a graph may have: twice what the hungriest pass has (tests/limits_test.cpp),
/// since a full graph aborts inside ggml. A stream of its own is 13 tensors more: views of its
/// tokens, K and V, the attention itself, the joining of its rows with the others'.
size_t node_capacity(size_t n_pass, size_t n_apart, const Hparams& hparams) {
    return 256 + 2 * n_apart + n_pass * (224 + 4 * size_t{hparams.n_expert_used} + 26 * n_apart);
}

ggml_type mask_type(const KvCache& cache) {
    return cache.flash_attention() ? GGML_TYPE_F16 : GGML_TYPE_F32;
}

}  // namespace

uint32_t n_positions_per_token(const Hparams& hparams) {
    // All layers of a model turn alike.
    return hparams.layers.front().rope.mode == GGML_ROPE_TYPE_IMROPE ? 4 : 1;
}

ggml_tensor* activate(ggml_context* c, Activation activation, ggml_tensor* gate, ggml_tensor* up) {
    switch (activation) {
        case Activation::silu:
            return ggml_swiglu_split(c, gate, up);
        case Activation::gelu:
            return ggml_geglu_split(c, gate, up);
    }
    return nullptr;
}

ggml_tensor* rope_factors(const Model& model, uint32_t n_ctx) {
    const Rope& rope = model.hparams().layers.front().rope;
    const Globals& globals = model.globals();
    if (!rope.longrope) return globals.rope_factors;
    const bool beyond = n_ctx > static_cast<uint32_t>(rope.n_ctx_orig);
    return beyond ? globals.rope_factors_long : globals.rope_factors_short;
}

GraphBuilder::GraphBuilder(const Model& model, const LayerPlan& plan, const Caches& caches,
                           ggml_tensor* rope_factors, const GraphShape& shape, size_t n_pass)
    : model_(model), plan_(plan), caches_(caches), rope_factors_(rope_factors) {
    const size_t capacity = node_capacity(n_pass, shape.apart.size(), model.hparams());
    graph_.shape = shape;
    graph_.context.reset(ggml_init({.mem_size = capacity * ggml_tensor_overhead() +
                                                ggml_graph_overhead_custom(capacity, false),
                                    .mem_buffer = nullptr,
                                    .no_alloc = true}));
    if (!graph_.context) fail("out of memory for a graph of {} passes", n_pass);
    c_ = graph_.context.get();
    graph_.nodes = ggml_new_graph_custom(c_, capacity, false);
}

void GraphBuilder::add_inputs() {
    graph_.positions =
        input(GGML_TYPE_I32, int64_t{graph_.shape.n_tokens} * n_positions_per_token(hparams()));
    graph_.output_rows = input(GGML_TYPE_I32, graph_.shape.n_outputs);
    add_kv_inputs(graph_.full, caches_.full, graph_.shape.n_kv_full);
    add_kv_inputs(graph_.window, caches_.window, graph_.shape.n_kv_window);
    add_masks_apart(graph_.full, caches_.full, &StreamShape::n_kv_full);
    add_masks_apart(graph_.window, caches_.window, &StreamShape::n_kv_window);
    if (!caches_.states.empty() && graph_.shape.first_state < 0) {
        graph_.state_rows = input(GGML_TYPE_I32, graph_.shape.n_seqs);
        graph_.state_rows_written = input(GGML_TYPE_I64, graph_.shape.n_seqs);
    }
}

void GraphBuilder::add_logits(ggml_tensor* hidden) {
    graph_.hidden = arch().final_norm(*this, hidden);
    ggml_set_output(graph_.hidden);
    if (!graph_.shape.head) {
        ggml_build_forward_expand(graph_.nodes, graph_.hidden);
        return;
    }
    graph_.logits = arch().logits(*this, graph_.hidden);
    ggml_set_output(graph_.logits);
    ggml_build_forward_expand(graph_.nodes, graph_.logits);
}

Graph GraphBuilder::build() {
    graph_.tokens = input(GGML_TYPE_I32, graph_.shape.n_tokens);
    add_inputs();
    ggml_tensor* hidden = arch().embed(*this);
    for (size_t i = 0; i < plan_.size(); ++i) {  // two passes may compare equal: "last" is a place
        last_ = i + 1 == plan_.size();
        hidden = apply_pass(plan_[i], hidden);
    }
    add_logits(hidden);
    return std::move(graph_);
}

Graph GraphBuilder::build_embedding() {
    graph_.tokens = input(GGML_TYPE_I32, graph_.shape.n_tokens);
    graph_.residual = arch().embed(*this);
    ggml_set_output(graph_.residual);
    ggml_build_forward_expand(graph_.nodes, graph_.residual);
    return std::move(graph_);
}

Graph GraphBuilder::build_pass(const Pass& pass, bool last) {
    add_inputs();
    last_ = last;
    graph_.residual_in = input(GGML_TYPE_F32, hparams().n_embd, graph_.shape.n_tokens);
    ggml_tensor* const hidden = apply_pass(pass, graph_.residual_in);
    if (last) {
        add_logits(hidden);
    } else {
        graph_.residual = hidden;
        ggml_set_output(graph_.residual);
        ggml_build_forward_expand(graph_.nodes, graph_.residual);
    }
    return std::move(graph_);
}

/// From here on the graph's inputs are those of the set.
void GraphBuilder::enter(const RowSet& set) {
    GraphShape& shape = graph_.shape;
    shape.n_tokens = shape.n_streams = shape.n_seqs = set.n_rows;
    graph_.positions = set.positions;
    graph_.full = set.full;
    graph_.window = set.window;
}

void GraphBuilder::add_row_set(uint32_t n_rows, bool all) {
    RowSet set{.n_rows = n_rows, .full = {}, .window = {}};
    if (!graph_.row_sets.empty()) {  // one matrix serves all
        const RowSet& first = graph_.row_sets.front();
        set.full = {.rotation_k = first.full.rotation_k, .rotation_v = first.full.rotation_v};
        set.window = {.rotation_k = first.window.rotation_k, .rotation_v = first.window.rotation_v};
    }
    set.positions = input(GGML_TYPE_I32, int64_t{n_rows} * n_positions_per_token(hparams()));
    enter(set);
    add_kv_inputs(set.full, caches_.full, graph_.shape.n_kv_full);
    add_kv_inputs(set.window, caches_.window, graph_.shape.n_kv_window);
    if (!all) {
        set.rows = input(GGML_TYPE_I32, n_rows);
        set.rows_written = input(GGML_TYPE_I64, n_rows);
    }
    graph_.row_sets.push_back(set);
}

Graph GraphBuilder::build_paths(std::span<const SetPass> passes, std::span<const uint32_t> n_rows) {
    const GraphShape shape = graph_.shape;
    fills_rows_ = true;
    graph_.tokens = input(GGML_TYPE_I32, shape.n_tokens);
    for (size_t i = 0; i < n_rows.size(); ++i) add_row_set(n_rows[i], i == 0);

    ggml_tensor* all = arch().embed(*this);
    ggml_tensor* hidden = all;  // of the rows of one set
    size_t set = 0;
    const auto change_to = [&](size_t next) {
        const RowSet& from = graph_.row_sets[set];
        all = from.rows == nullptr ? hidden : ggml_set_rows(c_, all, hidden, from.rows_written);
        const RowSet& to = graph_.row_sets[next];
        hidden = to.rows == nullptr ? all : ggml_get_rows(c_, all, to.rows);
        set = next;
    };
    for (const SetPass& it : passes) {
        if (it.set != set) change_to(it.set);
        enter(graph_.row_sets[set]);
        hidden = apply_pass(it.pass, hidden);
    }
    if (set != 0) change_to(0);
    graph_.shape = shape;
    add_logits(hidden);
    return std::move(graph_);
}

ggml_tensor* GraphBuilder::apply_pass(const Pass& pass, ggml_tensor* hidden) {
    const Layer& w = layer(pass);
    if (pass.attention) {
        hidden = add_scaled(hidden, arch().attention(*this, w, pass, hidden), pass.scale);
    }
    // Where stock leaves out the rows nobody asked for: kernels must see the same row counts.
    if (last_) hidden = select_outputs(hidden);
    if (pass.ffn) {
        hidden = add_scaled(hidden, arch().ffn(*this, w, pass, hidden), pass.scale);
    }
    return arch().after == nullptr ? hidden : arch().after(*this, w, pass, hidden);
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
    const int64_t v_rows = cache.flash_attention() ? 1 : cache.n_embd_v();
    inputs.v_cells = input(GGML_TYPE_I64, shape.n_tokens * v_rows);
    if (shape.apart.empty()) {
        inputs.mask =
            input(mask_type(cache), n_kv, shape.n_tokens / shape.n_streams, 1, shape.n_streams);
    }
    const auto add_rotation = [&](ggml_tensor*& rotation, uint32_t n) {
        if (rotation == nullptr && n > 0) rotation = input(GGML_TYPE_F32, n, n);
    };
    add_rotation(inputs.rotation_k, cache.rotation_k());
    add_rotation(inputs.rotation_v, cache.rotation_v());
}

void GraphBuilder::add_masks_apart(KvInputs& inputs, const KvCache& cache,
                                   uint32_t StreamShape::*n_kv) {
    if (cache.empty()) return;
    const GraphShape& shape = graph_.shape;
    for (const StreamShape& stream : shape.apart) {
        inputs.apart.push_back(
            {.first_stream = stream.stream,
             .n_streams = 1,
             .n_kv = stream.*n_kv,
             .mask = input(mask_type(cache), stream.*n_kv, shape.n_tokens / shape.n_streams)});
    }
}

ggml_tensor* GraphBuilder::embed_tokens() {
    return ggml_get_rows(c_, globals().token_embd, graph_.tokens);
}

ggml_tensor* GraphBuilder::rms_norm(ggml_tensor* x, ggml_tensor* weight) {
    ggml_tensor* const normed = ggml_rms_norm(c_, x, hparams().norm_eps);
    // Next to each other, so that the backend runs the two as one kernel.
    return weight == nullptr ? normed : ggml_mul(c_, normed, weight);
}

/// Rearranged weights are multiplied with four rows at a time, and with each row that is left over
/// alone, which reads them anew. Where the number of rows is ours to choose, there are none left
/// over.
ggml_tensor* GraphBuilder::multiply(ggml_tensor* weight, ggml_tensor* x) {
    constexpr int64_t unit = 4;
    const int64_t n_rows = x->ne[1];
    const bool rearranged =
        weight->buffer != nullptr && !ggml_backend_buffer_is_host(weight->buffer);
    if (!fills_rows_ || !rearranged || n_rows == 1 || n_rows % unit == 0 || x->ne[2] > 1) {
        return ggml_mul_mat(c_, weight, x);
    }
    if (filled_.from != x) {
        filled_ = {x, ggml_pad(c_, x, 0, static_cast<int>(unit - n_rows % unit), 0, 0)};
    }
    ggml_tensor* const y = ggml_mul_mat(c_, weight, filled_.to);
    return ggml_view_2d(c_, y, y->ne[0], n_rows, y->nb[1], 0);
}

ggml_tensor* GraphBuilder::project(const Linear& linear, ggml_tensor* x) {
    ggml_tensor* y = multiply(linear.weight, x);
    if (linear.scale != nullptr) y = ggml_mul(c_, y, linear.scale);
    if (linear.bias != nullptr) y = ggml_add(c_, y, linear.bias);
    return y;
}

ggml_tensor* GraphBuilder::project_ffn(const Linear& linear, ggml_tensor* x) {
    ggml_tensor* y = multiply(linear.weight, x);
    if (linear.bias != nullptr) y = ggml_add(c_, y, linear.bias);
    if (linear.scale != nullptr) y = ggml_mul(c_, y, linear.scale);
    return y;
}

ggml_tensor* GraphBuilder::gated_ffn(const GatedFfn& w, Activation activation, ggml_tensor* x) {
    ggml_tensor* const up = project_ffn(w.up, x);
    ggml_tensor* const gate = project_ffn(w.gate, x);
    return project_ffn(w.down, activate(c_, activation, gate, up));
}

ggml_tensor* GraphBuilder::layer_embedding(const Pass& pass) {
    const ggml_tensor* const all = layer_embeddings_;
    ggml_tensor* const own = ggml_view_2d(c_, layer_embeddings_, all->ne[0], all->ne[1], all->nb[1],
                                          static_cast<size_t>(pass.layer) * all->nb[2]);
    return last_ ? select_outputs(own) : own;
}

ggml_tensor* GraphBuilder::add_scaled(ggml_tensor* hidden, ggml_tensor* added, float scale) {
    if (scale != 1.0F) added = ggml_scale(c_, added, scale);
    return ggml_add(c_, added, hidden);
}

ggml_tensor* GraphBuilder::select_outputs(ggml_tensor* hidden) {
    return ggml_get_rows(c_, hidden, graph_.output_rows);
}

ggml_tensor* GraphBuilder::soft_cap(ggml_tensor* x, float cap) {
    if (cap == 0.0F) return x;
    return ggml_scale(c_, ggml_tanh(c_, ggml_scale(c_, x, 1.0F / cap)), cap);
}

}  // namespace pleat
