#pragma once

#include <ggml.h>

#include <cstdint>

#include "cache/kv_cache.h"
#include "graph/graph.h"
#include "model/model.h"
#include "plan/plan.h"

namespace pleat {

/// How a context computes, the same for all its graphs.
struct GraphSettings {
    bool flash_attention = true;
    ggml_tensor* rope_factors = nullptr;  ///< F32 [n_rot/2] or null
    uint32_t rotation_k = 0;              ///< size of the Hadamard rotation of Q and K; 0 = none
    uint32_t rotation_v = 0;
};

/// Q, K and V of one pass: [head_dim, n_head or n_head_kv, n_tokens].
struct Qkv {
    ggml_tensor* q = nullptr;
    ggml_tensor* k = nullptr;
    ggml_tensor* v = nullptr;
};

/// Builds one graph. The operations and their order of operands are stock's, since they decide
/// bits.
class GraphBuilder {
  public:
    GraphBuilder(const Model& model, const LayerPlan& plan, const KvCache& full,
                 const KvCache& window, const GraphSettings& settings, const GraphShape& shape);

    const Hparams& hparams() const { return model_.hparams(); }
    const Architecture& arch() const { return model_.architecture(); }
    const Layer& layer(const Pass& pass) const { return model_.layer(pass.layer); }
    const Globals& globals() const { return model_.globals(); }

    /// Rows of the embedding, F32 [n_embd, n_tokens].
    ggml_tensor* embed_tokens();
    ggml_tensor* rms_norm(ggml_tensor* x, ggml_tensor* weight);
    /// W x [* scale] [+ bias]: the order of attention projections and the head.
    ggml_tensor* project(const Linear& linear, ggml_tensor* x);
    /// W x [+ bias] [* scale]: the order inside an FFN.
    ggml_tensor* project_ffn(const Linear& linear, ggml_tensor* x);

    Qkv project_qkv(const Layer& w, const Pass& pass, ggml_tensor* x);
    ggml_tensor* rope(ggml_tensor* x);
    /// Writes K and V into the pass's slot, attends over the slot, applies the output projection.
    /// `scale` is the architecture's; the pass's qk_scale multiplies the query on top.
    ggml_tensor* attend(const Qkv& qkv, const Pass& pass, float scale, const Linear& output);

    /// down(silu(gate x) * (up x)); Shazeer 2020.
    ggml_tensor* swiglu_ffn(const Layer& w, ggml_tensor* x);
    /// Softmax routing over all experts, weights of the used ones normalised to 1.
    ggml_tensor* swiglu_experts(const Experts& experts, ggml_tensor* x);

    /// hidden + scale * added; scale 1 builds no node for it.
    ggml_tensor* add_scaled(ggml_tensor* hidden, ggml_tensor* added, float scale);
    /// The rows whose logits are wanted.
    ggml_tensor* select_outputs(ggml_tensor* hidden);

    /// The whole graph along the plan.
    Graph build();

  private:
    ggml_tensor* input(ggml_type type, int64_t ne0, int64_t ne1 = 1, int64_t ne2 = 1,
                       int64_t ne3 = 1);
    void add_kv_inputs(KvInputs& inputs, const KvCache& cache, uint32_t n_kv);
    ggml_tensor* rotate(ggml_tensor* x, ggml_tensor* rotation);
    void store(const KvCache& cache, const KvInputs& inputs, const Qkv& qkv, int32_t slot);
    ggml_tensor* view_k(const KvCache& cache, const KvInputs& inputs, int32_t slot,
                        int64_t head_dim);
    ggml_tensor* view_v(const KvCache& cache, const KvInputs& inputs, int32_t slot,
                        int64_t head_dim);
    ggml_tensor* apply_pass(const Pass& pass, ggml_tensor* hidden, bool last);

    const Model& model_;
    const LayerPlan& plan_;
    const KvCache& full_;
    const KvCache& window_;
    const GraphSettings& settings_;
    Graph graph_;
    ggml_context* c_ = nullptr;
};

}  // namespace pleat
