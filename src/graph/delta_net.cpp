#include <cmath>

#include "graph/builder.h"

namespace pleat {

ggml_tensor* GraphBuilder::read_states(ggml_tensor* all) {
    if (graph_.shape.first_state < 0) return ggml_get_rows(c_, all, graph_.state_rows);
    return ggml_view_2d(c_, all, all->ne[0], graph_.shape.n_seqs, all->nb[1],
                        static_cast<size_t>(graph_.shape.first_state) * all->nb[1]);
}

/// Nothing depends on a write, so it is expanded into the graph here; what it writes was computed
/// from what was read, so it comes after the reading.
void GraphBuilder::write_states(ggml_tensor* all, ggml_tensor* states) {
    ggml_tensor* written = nullptr;
    if (graph_.shape.first_state < 0) {
        ggml_tensor* const rows = ggml_is_contiguous(states) ? states : ggml_cont(c_, states);
        written = ggml_set_rows(c_, all, ggml_reshape_2d(c_, rows, all->ne[0], graph_.shape.n_seqs),
                                graph_.state_rows_written);
    } else {
        written = ggml_cpy(c_, states, read_states(all));
    }
    ggml_build_forward_expand(graph_.nodes, written);
}

ggml_tensor* GraphBuilder::delta_net(const DeltaNet& w, const Pass& pass, ggml_tensor* x) {
    const DeltaNetHparams& h = *hparams().delta_net;
    const StateCache::Slots& slot = caches_.states.slot(pass.slot);
    const int64_t n_seqs = graph_.shape.n_seqs;
    const int64_t n_tokens = x->ne[1] / n_seqs;  // of each sequence
    const int64_t dim = h.head_dim;
    const int64_t n_past = int64_t{h.n_conv} - 1;
    const int64_t n_channels = h.n_channels();

    // A causal convolution over the sequence: the last inputs of the past in front.
    ggml_tensor* past = ggml_reshape_3d(c_, read_states(slot.conv), n_past, n_channels, n_seqs);
    ggml_tensor* const now = ggml_reshape_3d(c_, project(w.qkv, x), n_channels, n_tokens, n_seqs);
    ggml_tensor* const inputs = ggml_concat(c_, past, ggml_transpose(c_, now), 0);
    write_states(slot.conv,
                 ggml_view_3d(c_, inputs, n_past, n_channels, n_seqs, inputs->nb[1], inputs->nb[2],
                              static_cast<size_t>(n_tokens) * inputs->nb[0]));
    ggml_tensor* const qkv = ggml_silu(c_, ggml_ssm_conv(c_, inputs, w.conv));

    const auto heads = [&](int64_t n_head, int64_t first_channel) {
        return ggml_view_4d(c_, qkv, dim, n_head, n_tokens, n_seqs, ggml_row_size(qkv->type, dim),
                            qkv->nb[1], qkv->nb[2], ggml_row_size(qkv->type, first_channel));
    };
    // Unit length by way of the RMS norm, whose epsilon is per element.
    const auto normalised = [&](ggml_tensor* t) {
        const auto n = static_cast<float>(dim);
        return ggml_scale(c_, ggml_rms_norm(c_, t, hparams().norm_eps / n), 1.0F / std::sqrt(n));
    };
    ggml_tensor* const q = normalised(heads(h.n_head_k, 0));
    ggml_tensor* const k = normalised(heads(h.n_head_k, h.n_embd_k()));
    ggml_tensor* const v = heads(h.n_head_v, 2 * h.n_embd_k());

    ggml_tensor* decay = ggml_reshape_3d(c_, project(w.alpha, x), h.n_head_v, n_tokens, n_seqs);
    decay = ggml_mul(c_, ggml_softplus(c_, ggml_add(c_, decay, w.dt_bias)), w.a);
    decay = ggml_reshape_4d(c_, decay, 1, h.n_head_v, n_tokens, n_seqs);
    ggml_tensor* const beta =
        ggml_sigmoid(c_, ggml_reshape_4d(c_, project(w.beta, x), 1, h.n_head_v, n_tokens, n_seqs));

    ggml_tensor* const state =
        ggml_reshape_4d(c_, read_states(slot.delta), dim, dim, h.n_head_v, n_seqs);
    ggml_tensor* const result = ggml_gated_delta_net(c_, q, k, v, decay, beta, state, 1);
    // Outputs of all tokens first, then the new states.
    const auto part = [&](int64_t ne1, int64_t ne2, int64_t first_element) {
        const size_t row = ggml_row_size(result->type, dim);
        const size_t plane = row * static_cast<size_t>(ne1);
        return ggml_view_4d(c_, result, dim, ne1, ne2, n_seqs, row, plane,
                            plane * static_cast<size_t>(ne2),
                            ggml_row_size(result->type, first_element));
    };
    ggml_tensor* const new_state = part(dim, h.n_head_v, h.n_embd_v() * n_tokens * n_seqs);
    ggml_build_forward_expand(graph_.nodes, result);
    write_states(slot.delta, new_state);

    ggml_tensor* out = rms_norm(part(h.n_head_v, n_tokens, 0), w.norm);
    ggml_tensor* const gate =
        ggml_reshape_4d(c_, project(w.gate, x), dim, h.n_head_v, n_tokens, n_seqs);
    out = ggml_mul(c_, out, ggml_silu(c_, gate));
    out = project(w.output, ggml_reshape_3d(c_, out, h.n_embd_v(), n_tokens, n_seqs));
    return ggml_reshape_2d(c_, out, hparams().n_embd, n_tokens * n_seqs);
}

}  // namespace pleat
