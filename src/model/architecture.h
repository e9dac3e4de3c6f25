#pragma once

#include <string_view>
#include <vector>

#include "gguf/file.h"
#include "model/hparams.h"
#include "model/tensor_list.h"
#include "model/weights.h"
#include "plan/shape.h"

struct ggml_tensor;

namespace pleat {

class GraphBuilder;
struct Pass;

/// What a model family must provide: one row of the table in arch/. It says what a sub-layer
/// computes; repeats, drops, scales and caches are none of its business.
struct Architecture {
    std::string_view name;  ///< general.architecture

    /// Reads and checks the metadata. Throws Error that names the key.
    Hparams (*hparams)(const gguf::File& file);
    /// The role of each layer (and what else a LayerShape says that no tensor tells).
    void (*roles)(const gguf::File& file, const Hparams& hparams, ModelShape& shape);
    void (*global_tensors)(const Hparams& hparams, TensorList& list, Globals& globals);
    void (*layer_tensors)(const Hparams& hparams, int32_t layer, TensorList& list, Layer& weights);

    /// Residual stream of a batch, F32 [n_embd, n_tokens].
    ggml_tensor* (*embed)(GraphBuilder& b);
    /// What a sub-layer adds to the residual stream: F32 [n_embd, n_tokens] to the same shape.
    ggml_tensor* (*attention)(GraphBuilder& b, const Layer& w, const Pass& pass,
                              ggml_tensor* hidden);
    ggml_tensor* (*ffn)(GraphBuilder& b, const Layer& w, const Pass& pass, ggml_tensor* hidden);
    /// After the last pass: final norm, F32 [n_embd, n_outputs]; then the head, F32 [n_vocab,
    /// n_outputs].
    ggml_tensor* (*final_norm)(GraphBuilder& b, ggml_tensor* hidden);
    ggml_tensor* (*logits)(GraphBuilder& b, ggml_tensor* normed);

    /// Metadata keys (without the architecture's prefix) that may hold one entry per layer and so
    /// follow the path when a plan is baked.
    std::vector<std::string_view> per_layer_keys;

    /// Stock reads head counts and FFN width of all layers from the first one's entry, though the
    /// keys may be arrays.
    bool stock_layers_are_alike = false;
};

}  // namespace pleat
