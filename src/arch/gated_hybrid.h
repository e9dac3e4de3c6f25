#pragma once

#include <cstdint>
#include <vector>

#include "arch/keys.h"
#include "graph/builder.h"
#include "model/hparams.h"
#include "model/tensor_list.h"
#include "model/weights.h"

/// What the hybrids of Gated DeltaNet and gated attention share; they differ in the FFN.
/// Facts: docs/design/architectures/qwen35.md
namespace pleat {

/// All keys but the FFN's.
Hparams read_hybrid_keys(const Keys& keys);

/// The kinds of a file of the plan's passes. Throws Error when the path has layers of one kind
/// only, which stock does not run.
std::vector<gguf::KeyValue> baked_hybrid_keys(const Hparams& h, const LayerPlan& plan);

/// Norms and the first sub-layer; throws Error when the tensors are those of the other role.
void hybrid_layer_tensors(const Hparams& h, int32_t layer, TensorList& list, Layer& w);

/// The first sub-layer, by the layer's role.
ggml_tensor* hybrid_attention(GraphBuilder& b, const Layer& w, const Pass& pass,
                              ggml_tensor* hidden);

}  // namespace pleat
