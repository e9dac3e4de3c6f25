#pragma once

#include <string_view>
#include <vector>

#include "gguf/file.h"
#include "gguf/value.h"
#include "model/hparams.h"
#include "model/tensor_list.h"
#include "model/weights.h"
#include "plan/shape.h"

struct ggml_tensor;

namespace pleat {

class GraphBuilder;
class LayerPlan;
struct Pass;

/// What a model family must provide: one row of the table in arch/. It says what a sub-layer
/// computes; repeats, drops, scales and caches are none of its business.
struct Architecture {
    std::string_view name;  ///< general.architecture

    /// Reads and checks the metadata, roles included. Throws Error that names the key.
    Hparams (*hparams)(const gguf::File& file);
    void (*global_tensors)(const Hparams& hparams, TensorList& list, Globals& globals);
    void (*layer_tensors)(const Hparams& hparams, int32_t layer, TensorList& list, Layer& weights);

    /// Residual stream of a batch, F32 [n_embd, n_tokens].
    ggml_tensor* (*embed)(GraphBuilder& b);
    /// What a sub-layer adds to the residual stream: F32 [n_embd, n_tokens] to the same shape.
    ggml_tensor* (*attention)(GraphBuilder& b, const Layer& w, const Pass& pass,
                              ggml_tensor* hidden);
    ggml_tensor* (*ffn)(GraphBuilder& b, const Layer& w, const Pass& pass, ggml_tensor* hidden);
    /// What becomes of the stream after both sub-layers, dropped or not; null where nothing does.
    ggml_tensor* (*after)(GraphBuilder& b, const Layer& w, const Pass& pass,
                          ggml_tensor* hidden) = nullptr;
    /// After the last pass: final norm, F32 [n_embd, n_outputs]; then the head, F32 [n_vocab,
    /// n_outputs].
    ggml_tensor* (*final_norm)(GraphBuilder& b, ggml_tensor* hidden);
    ggml_tensor* (*logits)(GraphBuilder& b, ggml_tensor* normed);

    /// Keys (without the architecture's prefix) that a file of the plan's passes must have for
    /// stock to compute the plan: what stock reads off a layer's index has to be said pass by pass.
    /// Throws Error when stock cannot compute it. Null: nothing depends on the index.
    std::vector<gguf::KeyValue> (*baked_keys)(const Hparams& hparams,
                                              const LayerPlan& plan) = nullptr;

    /// Metadata keys (without the architecture's prefix) that may hold one entry per layer and so
    /// follow the path when a plan is baked.
    std::vector<std::string_view> per_layer_keys = {"feed_forward_length", "attention.head_count",
                                                    "attention.head_count_kv"};

    /// Stock reads head counts and FFN width of all layers from the first one's entry, though the
    /// keys may be arrays.
    bool stock_layers_are_alike = false;
};

}  // namespace pleat
