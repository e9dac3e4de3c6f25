#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/context.h"
#include "lab/profile.h"
#include "model/model.h"

namespace pleat {

/// Sum over tokens of cos(before, after), streams F32 [n_embd, n_tokens]; in double. A vector of
/// zeros has the cosine 0.
double sum_of_cosines(std::span<const float> before, std::span<const float> after, size_t n_embd);

/// Can the sub-layers of this model run apart? Not where layers share K/V, or something stands
/// outside both sub-layers.
bool has_separate_sublayers(const Model& model);

/// By layer, over all tokens of the sequences, which must be of one length. `rows_per_batch` tokens
/// run together. Empty when `progress` stopped it. Throws Error as PassRunner does, and for models
/// without separate sub-layers.
std::vector<LayerSimilarity> layer_similarity(
    const std::shared_ptr<Model>& model, const ContextSettings& settings, uint32_t rows_per_batch,
    std::span<const std::vector<int32_t>> sequences,
    const std::function<bool(double fraction)>& progress = {});

}  // namespace pleat
