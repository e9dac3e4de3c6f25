#include <array>
#include <vector>

#include "base/error.h"
#include "graph/builder.h"

namespace pleat {

Qkv GraphBuilder::project_qkv(const Layer& w, const Pass& pass, ggml_tensor* x) {
    const LayerHparams& h = hparams(pass);
    const int64_t n_head = h.n_head;
    const int64_t n_head_kv = h.n_head_kv;
    const int64_t dim_k = h.head_dim_k;
    const int64_t dim_v = h.head_dim_v;
    const int64_t n_tokens = x->ne[1];

    if (w.attn_qkv.weight != nullptr) {
        ggml_tensor* const qkv = project(w.attn_qkv, x);
        const auto part = [&](int64_t dim, int64_t heads, int64_t first_row) {
            return ggml_view_3d(c_, qkv, dim, heads, n_tokens, ggml_row_size(qkv->type, dim),
                                qkv->nb[1], ggml_row_size(qkv->type, first_row));
        };
        return {.q = part(dim_k, n_head, 0),
                .k = part(dim_k, n_head_kv, n_head * dim_k),
                .v = part(dim_v, n_head_kv, (n_head + n_head_kv) * dim_k)};
    }
    const auto heads = [&](const Linear& linear, int64_t dim, int64_t n) {
        return ggml_reshape_3d(c_, project(linear, x), dim, n, n_tokens);
    };
    return {.q = heads(w.attn_q, dim_k, n_head),
            .k = heads(w.attn_k, dim_k, n_head_kv),
            .v = heads(w.attn_v, dim_v, n_head_kv)};
}

ggml_tensor* GraphBuilder::rope(const Pass& pass, ggml_tensor* x) {
    const Rope& r = hparams(pass).rope;
    ggml_tensor* const factors = r.uses_factors ? rope_factors_ : nullptr;
    if (r.mode == GGML_ROPE_TYPE_IMROPE) {
        std::array<int, 4> sections = r.sections;
        return ggml_rope_multi(c_, x, graph_.positions, factors, r.n_rot, sections.data(), r.mode,
                               r.n_ctx_orig, r.freq_base, r.freq_scale, r.ext_factor, r.attn_factor,
                               r.beta_fast, r.beta_slow);
    }
    return ggml_rope_ext(c_, x, graph_.positions, factors, r.n_rot, r.mode, r.n_ctx_orig,
                         r.freq_base, r.freq_scale, r.ext_factor, r.attn_factor, r.beta_fast,
                         r.beta_slow);
}

ggml_tensor* GraphBuilder::rotate(ggml_tensor* x, ggml_tensor* rotation) {
    if (rotation == nullptr) return x;
    const int64_t n = rotation->ne[0];
    ggml_tensor* const flat = ggml_is_contiguous(x) ? x : ggml_cont(c_, x);
    ggml_tensor* y =
        ggml_mul_mat(c_, rotation, ggml_reshape_2d(c_, flat, n, ggml_nelements(x) / n));
    ggml_mul_mat_set_hint(y, GGML_HINT_SRC0_IS_HADAMARD);
    return ggml_reshape_4d(c_, y, x->ne[0], x->ne[1], x->ne[2], x->ne[3]);
}

void GraphBuilder::store(const KvCache& cache, const KvInputs& inputs, const Qkv& qkv,
                         int32_t slot) {
    const KvCache::Slots& s = cache.slot(slot);
    const int64_t n_tokens = qkv.k->ne[2];
    const auto rows = [&](ggml_tensor* x) {
        return ggml_view_2d(c_, x, x->ne[0] * x->ne[1], n_tokens, x->nb[2], 0);
    };
    const auto all_streams = [&](ggml_tensor* t) {
        return ggml_reshape_2d(c_, t, t->ne[0], t->ne[1] * t->ne[2]);
    };
    ggml_tensor* const k = ggml_set_rows(c_, all_streams(s.k), rows(qkv.k), inputs.k_cells);
    ggml_tensor* v = nullptr;
    if (cache.flash_attention()) {
        v = ggml_set_rows(c_, all_streams(s.v), rows(qkv.v), inputs.v_cells);
    } else {
        // V lies transposed, so every element is a row of its own; one list of rows serves all
        // slots, so narrow ones are filled up to the widest.
        ggml_tensor* flat = ggml_is_contiguous(qkv.v) ? qkv.v : ggml_cont(c_, qkv.v);
        const int64_t n_embd_v = flat->ne[0] * flat->ne[1];
        if (n_embd_v < s.v->ne[0]) {
            flat = ggml_pad(c_, ggml_reshape_2d(c_, flat, n_embd_v, n_tokens),
                            static_cast<int>(s.v->ne[0] - n_embd_v), 0, 0, 0);
        }
        v = ggml_set_rows(c_, ggml_reshape_2d(c_, s.v, 1, ggml_nelements(s.v)),
                          ggml_reshape_2d(c_, flat, 1, ggml_nelements(flat)), inputs.v_cells);
    }
    // No edge leads from a write to the reads of the cache: the order of expansion is what counts.
    ggml_build_forward_expand(graph_.nodes, k);
    ggml_build_forward_expand(graph_.nodes, v);
}

ggml_tensor* GraphBuilder::view_k(const KvCache& cache, const KvView& view, int32_t slot,
                                  int64_t head_dim) {
    ggml_tensor* const k = cache.slot(slot).k;
    const int64_t n_head_kv = k->ne[0] / head_dim;
    ggml_tensor* const cells = ggml_view_4d(c_, k, head_dim, n_head_kv, view.n_kv, view.n_streams,
                                            ggml_row_size(k->type, head_dim), k->nb[1], k->nb[2],
                                            view.first_stream * k->nb[2]);
    return ggml_permute(c_, cells, 0, 2, 1, 3);
}

ggml_tensor* GraphBuilder::view_v(const KvCache& cache, const KvView& view, int32_t slot,
                                  int64_t head_dim, int64_t n_head_kv) {
    ggml_tensor* const v = cache.slot(slot).v;
    const size_t offset = view.first_stream * v->nb[2];
    ggml_tensor* cells = nullptr;
    if (cache.flash_attention()) {
        cells = ggml_view_4d(c_, v, head_dim, n_head_kv, view.n_kv, view.n_streams,
                             ggml_row_size(v->type, head_dim), v->nb[1], v->nb[2], offset);
    } else {
        const size_t element = ggml_element_size(v);
        const size_t column = element * static_cast<size_t>(v->ne[1]);
        cells = ggml_view_4d(c_, v, view.n_kv, n_head_kv, head_dim, view.n_streams,
                             column * static_cast<size_t>(head_dim), column, v->nb[2], offset);
    }
    return ggml_permute(c_, cells, 0, 2, 1, 3);
}

ggml_tensor* GraphBuilder::attend(const Qkv& qkv, const Pass& pass, float scale) {
    const bool in_window = caches_.window.has(pass.slot);
    const KvCache& cache = in_window ? caches_.window : caches_.full;
    const KvInputs& inputs = in_window ? graph_.window : graph_.full;
    // On the query and not in the kernel's scale: kernels round the query to the type of the keys,
    // so only this equals a factor in its projection bit for bit.
    ggml_tensor* q = pass.qk_scale == 1.0F ? qkv.q : ggml_scale(c_, qkv.q, pass.qk_scale);
    q = rotate(q, inputs.rotation_k);
    ggml_build_forward_expand(graph_.nodes, q);
    if (qkv.k != nullptr) {
        const Qkv rotated{
            .q = q, .k = rotate(qkv.k, inputs.rotation_k), .v = rotate(qkv.v, inputs.rotation_v)};
        ggml_build_forward_expand(graph_.nodes, rotated.v);
        ggml_build_forward_expand(graph_.nodes, rotated.k);
        store(cache, inputs, rotated, pass.slot);
    }

    std::vector<ggml_tensor*> rows;
    size_t first_token = 0;
    for (const KvView& view : views(inputs)) {
        const auto n_tokens = static_cast<size_t>(view.mask->ne[1]);  // of each stream
        ggml_tensor* const own =
            ggml_view_4d(c_, q, q->ne[0], q->ne[1], view.mask->ne[1], view.n_streams, q->nb[1],
                         q->nb[2], q->nb[2] * n_tokens, q->nb[2] * first_token);
        rows.push_back(attend_view(cache, view, pass, own, scale));
        first_token += n_tokens * view.n_streams;
    }
    return rotate(joined(rows), inputs.rotation_v);
}

std::vector<KvView> GraphBuilder::views(const KvInputs& inputs) const {
    if (!inputs.apart.empty()) return inputs.apart;
    return {{.first_stream = graph_.shape.first_stream,
             .n_streams = graph_.shape.n_streams,
             .n_kv = inputs.n_kv,
             .mask = inputs.mask}};
}

/// One after another, in as few copies as a tree makes. The tokens lie in the third dimension,
/// which is the one that threads share out.
ggml_tensor* GraphBuilder::joined(std::span<ggml_tensor* const> rows) {
    if (rows.size() == 1) return rows.front();
    const size_t half = rows.size() / 2;
    const auto in_third = [&](ggml_tensor* x) {
        return ggml_reshape_3d(c_, x, x->ne[0], 1, x->ne[1]);
    };
    ggml_tensor* const all = ggml_concat(c_, in_third(joined(rows.first(half))),
                                         in_third(joined(rows.subspan(half))), 2);
    return ggml_reshape_2d(c_, all, all->ne[0], all->ne[2]);
}

/// q: [head_dim, n_head, n_stream_tokens, n_streams]
ggml_tensor* GraphBuilder::attend_view(const KvCache& cache, const KvView& view, const Pass& pass,
                                       ggml_tensor* q, float scale) {
    const int64_t dim_v = hparams(pass).head_dim_v;
    const int64_t n_head = q->ne[1];
    const int64_t n_tokens = q->ne[2] * q->ne[3];
    ggml_tensor* k = view_k(cache, view, pass.slot, q->ne[0]);
    ggml_tensor* v = view_v(cache, view, pass.slot, dim_v, hparams(pass).n_head_kv);
    q = ggml_permute(c_, q, 0, 2, 1, 3);
    ggml_tensor* out = nullptr;
    if (cache.flash_attention()) {
        // Stock's kernels see F16 here also when the cache is F32.
        if (k->type == GGML_TYPE_F32) k = ggml_cast(c_, k, GGML_TYPE_F16);
        if (v->type == GGML_TYPE_F32) v = ggml_cast(c_, v, GGML_TYPE_F16);
        out = ggml_flash_attn_ext(c_, q, k, v, view.mask, scale, 0.0F, 0.0F);
        ggml_prec_set_acc(out, GGML_PREC_F32);
        return ggml_reshape_2d(c_, out, dim_v * n_head, n_tokens);
    }
    ggml_tensor* scores = ggml_mul_mat(c_, k, q);
    ggml_prec_set_acc(scores, GGML_PREC_F32);
    scores = ggml_soft_max_ext(c_, scores, view.mask, scale, 0.0F);
    out = ggml_permute(c_, ggml_mul_mat(c_, v, scores), 0, 2, 1, 3);
    return ggml_cont_2d(c_, out, dim_v * n_head, n_tokens);
}

}  // namespace pleat
