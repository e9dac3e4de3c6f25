#include <cmath>

#include "graph/builder.h"

namespace pleat {
namespace {

/// One factor per expert on each used expert's output [n, n_used, n_tokens].
ggml_tensor* scale_experts(ggml_context* c, ggml_tensor* x, ggml_tensor* scale, ggml_tensor* ids) {
    if (scale == nullptr) return x;
    const int64_t n_tokens = x->ne[2];
    ggml_tensor* s = ggml_reshape_3d(c, scale, 1, scale->ne[0], 1);
    s = ggml_repeat_4d(c, s, 1, scale->ne[0], n_tokens, 1);
    return ggml_mul(c, x, ggml_get_rows(c, s, ids));
}

}  // namespace

ggml_tensor* GraphBuilder::route(const Experts& experts, ggml_tensor* x) {
    return ggml_mul_mat(c_, experts.router, x);
}

ggml_tensor* GraphBuilder::experts(const Experts& experts, Activation activation, ggml_tensor* x,
                                   ggml_tensor* router_logits) {
    const int64_t n_embd = x->ne[0];
    const int64_t n_tokens = x->ne[1];
    const int64_t n_expert = hparams().n_expert;
    const int64_t n_used = hparams().n_expert_used;

    ggml_tensor* const probs = ggml_soft_max(c_, router_logits);
    ggml_tensor* const ids = ggml_argsort_top_k(c_, probs, static_cast<int>(n_used));
    ggml_tensor* weights =
        ggml_get_rows(c_, ggml_reshape_3d(c_, probs, 1, n_expert, n_tokens), ids);
    weights = ggml_reshape_2d(c_, weights, n_used, n_tokens);
    // The lower bound keeps the quotient finite; it is the smallest normal F16.
    ggml_tensor* const sum = ggml_clamp(c_, ggml_sum_rows(c_, weights), 6.103515625e-5F, INFINITY);
    weights = ggml_reshape_3d(c_, ggml_div(c_, weights, sum), 1, n_used, n_tokens);

    const auto project_experts = [&](const Linear& linear, ggml_tensor* input) {
        return scale_experts(c_, ggml_mul_mat_id(c_, linear.weight, input, ids), linear.scale, ids);
    };
    ggml_tensor* const columns = ggml_reshape_3d(c_, x, n_embd, 1, n_tokens);
    ggml_tensor* up = nullptr;
    ggml_tensor* gate = nullptr;
    if (experts.gate_up.weight != nullptr) {
        ggml_tensor* const both = project_experts(experts.gate_up, columns);
        const int64_t n_ff = both->ne[0] / 2;
        const auto half = [&](int64_t i) {
            return ggml_view_3d(c_, both, n_ff, n_used, n_tokens, both->nb[1], both->nb[2],
                                static_cast<size_t>(i * n_ff) * both->nb[0]);
        };
        gate = half(0);
        up = half(1);
    } else {
        up = project_experts(experts.up, columns);
        gate = project_experts(experts.gate, columns);
    }
    ggml_tensor* outputs = project_experts(experts.down, activate(c_, activation, gate, up));
    outputs = ggml_mul(c_, outputs, weights);

    const auto expert = [&](int64_t i) {
        return ggml_view_2d(c_, outputs, n_embd, n_tokens, outputs->nb[2],
                            static_cast<size_t>(i) * outputs->nb[1]);
    };
    if (n_used == 1) return ggml_cont(c_, expert(0));
    ggml_tensor* total = expert(0);
    for (int64_t i = 1; i < n_used; ++i) total = ggml_add(c_, total, expert(i));
    return total;
}

}  // namespace pleat
