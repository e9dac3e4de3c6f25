#pragma once

#include <ggml.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/kv_cache.h"
#include "cache/state_cache.h"
#include "graph/graph.h"
#include "model/model.h"
#include "plan/plan.h"

namespace pleat {

/// The caches of a context, borrowed.
struct Caches {
    const KvCache& full;
    const KvCache& window;
    const StateCache& states;
};

/// The function between gate and product of a gated FFN (Shazeer 2020).
enum class Activation { silu, gelu };

/// act(gate) * up
ggml_tensor* activate(ggml_context* c, Activation activation, ggml_tensor* gate, ggml_tensor* up);

/// IMROPE gives a token four positions (time, height, width, and one unused): GraphBuilder's input
/// of positions holds as many runs of n_tokens.
uint32_t n_positions_per_token(const Hparams& hparams);

/// The frequency factors of the model for contexts of n_ctx tokens; null when it has none.
ggml_tensor* rope_factors(const Model& model, uint32_t n_ctx);

/// Q, K and V of one pass: [head_dim, n_head or n_head_kv, n_tokens]. A shared-KV consumer has Q
/// alone.
struct Qkv {
    ggml_tensor* q = nullptr;
    ggml_tensor* k = nullptr;
    ggml_tensor* v = nullptr;
};

/// A pass that the rows of one set take together; set 0 holds all rows.
struct SetPass {
    Pass pass;
    size_t set = 0;
};

/// Builds one graph. The operations and their order of operands are stock's, since they decide
/// bits.
class GraphBuilder {
  public:
    /// `rope_factors`: F32 [n_rot/2] or null; `n_pass`: how many passes the graph will hold.
    GraphBuilder(const Model& model, const LayerPlan& plan, const Caches& caches,
                 ggml_tensor* rope_factors, const GraphShape& shape, size_t n_pass);
    GraphBuilder(const Model& model, const LayerPlan& plan, const Caches& caches,
                 ggml_tensor* rope_factors, const GraphShape& shape)
        : GraphBuilder(model, plan, caches, rope_factors, shape, plan.size()) {}

    const Hparams& hparams() const { return model_.hparams(); }
    const LayerHparams& hparams(const Pass& pass) const {
        return hparams().layers[static_cast<size_t>(pass.layer)];
    }
    const Architecture& arch() const { return model_.architecture(); }
    const Layer& layer(const Pass& pass) const { return model_.layer(pass.layer); }
    const Globals& globals() const { return model_.globals(); }
    ggml_context* ggml() const { return c_; }

    /// Rows of the embedding, F32 [n_embd, n_tokens].
    ggml_tensor* embed_tokens();
    /// Without a weight the norm alone.
    ggml_tensor* rms_norm(ggml_tensor* x, ggml_tensor* weight = nullptr);
    /// W x [* scale] [+ bias]: the order of attention projections and the head.
    ggml_tensor* project(const Linear& linear, ggml_tensor* x);
    /// W x [+ bias] [* scale]: the order inside an FFN.
    ggml_tensor* project_ffn(const Linear& linear, ggml_tensor* x);

    Qkv project_qkv(const Layer& w, const Pass& pass, ggml_tensor* x);
    /// x [head_dim, heads, n_tokens], turned by the layer's RoPE.
    ggml_tensor* rope(const Pass& pass, ggml_tensor* x);
    /// Writes K and V (where there are any) into the pass's slot and attends over the slot:
    /// F32 [head_dim_v * n_head, n_tokens], before the output projection. `scale` is the
    /// architecture's; the pass's qk_scale multiplies the query on top.
    ggml_tensor* attend(const Qkv& qkv, const Pass& pass, float scale);
    /// Gated DeltaNet (Yang et al. 2024) with the pass's states: F32 [n_embd, n_tokens].
    ggml_tensor* delta_net(const DeltaNet& w, const Pass& pass, ggml_tensor* x);

    /// down(act(gate x) * (up x)); Shazeer 2020.
    ggml_tensor* gated_ffn(const GatedFfn& w, Activation activation, ggml_tensor* x);
    /// What routing starts from: F32 [n_expert, n_tokens].
    ggml_tensor* route(const Experts& experts, ggml_tensor* x);
    /// Softmax routing over all experts, weights of the used ones normalised to 1.
    ggml_tensor* experts(const Experts& experts, Activation activation, ggml_tensor* x,
                         ggml_tensor* router_logits);

    /// Embeddings that the layers add of their own, F32 [n_embd_per_layer, n_tokens, n_layer],
    /// computed once before the first pass.
    void set_layer_embeddings(ggml_tensor* embeddings) { layer_embeddings_ = embeddings; }
    /// Those of the pass's layer, F32 [n_embd_per_layer, n_tokens or n_outputs].
    ggml_tensor* layer_embedding(const Pass& pass);

    /// hidden + scale * added; scale 1 builds no node for it.
    ggml_tensor* add_scaled(ggml_tensor* hidden, ggml_tensor* added, float scale);
    /// The rows whose logits are wanted.
    ggml_tensor* select_outputs(ggml_tensor* hidden);
    /// cap * tanh(x / cap); x itself where the cap is 0.
    ggml_tensor* soft_cap(ggml_tensor* x, float cap);
    ggml_tensor* tokens() const { return graph_.tokens; }

    /// The whole graph along the plan.
    Graph build();
    /// The residual stream before the first pass, from tokens.
    Graph build_embedding();
    /// One pass from residual stream to residual stream; the last one of a path to logits.
    Graph build_pass(const Pass& pass, bool last);
    /// One token of each of many sequences, along paths of their own: the passes in this order,
    /// each for the rows of its set, and logits of all rows. Streams and states of a set's rows
    /// follow each other in the pass's slot from 0 on. `n_rows`: by set.
    Graph build_paths(std::span<const SetPass> passes, std::span<const uint32_t> n_rows);

  private:
    ggml_tensor* input(ggml_type type, int64_t ne0, int64_t ne1 = 1, int64_t ne2 = 1,
                       int64_t ne3 = 1);
    void add_kv_inputs(KvInputs& inputs, const KvCache& cache, uint32_t n_kv);
    ggml_tensor* rotate(ggml_tensor* x, ggml_tensor* rotation);
    void store(const KvCache& cache, const KvInputs& inputs, const Qkv& qkv, int32_t slot);
    void add_masks_apart(KvInputs& inputs, const KvCache& cache, uint32_t StreamShape::*n_kv);
    std::vector<KvView> views(const KvInputs& inputs) const;
    ggml_tensor* view_k(const KvCache& cache, const KvView& view, int32_t slot, int64_t head_dim);
    ggml_tensor* view_v(const KvCache& cache, const KvView& view, int32_t slot, int64_t head_dim,
                        int64_t n_head_kv);
    ggml_tensor* attend_view(const KvCache& cache, const KvView& view, const Pass& pass,
                             ggml_tensor* q, float scale);
    ggml_tensor* joined(std::span<ggml_tensor* const> rows);
    void add_inputs();
    void add_row_set(uint32_t n_rows, bool all);
    void enter(const RowSet& set);
    void add_logits(ggml_tensor* hidden);
    ggml_tensor* read_states(ggml_tensor* all);
    void write_states(ggml_tensor* all, ggml_tensor* states);
    ggml_tensor* multiply(ggml_tensor* weight, ggml_tensor* x);
    ggml_tensor* apply_pass(const Pass& pass, ggml_tensor* hidden);

    const Model& model_;
    const LayerPlan& plan_;
    const Caches caches_;
    ggml_tensor* const rope_factors_;
    Graph graph_;
    ggml_context* c_ = nullptr;
    ggml_tensor* layer_embeddings_ = nullptr;
    bool last_ = false;        ///< in the last pass
    bool fills_rows_ = false;  ///< multiply() may add rows
    struct {
        const ggml_tensor* from = nullptr;
        ggml_tensor* to = nullptr;
    } filled_;  ///< the last input that it added some to
};

}  // namespace pleat
