#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "engine/context.h"
#include "model/model.h"
#include "plan/plan.h"

namespace pleat {

/// Tokens per second of single-token steps from an empty cache, by plan: the median of `n_rounds`
/// rounds in which all plans take turns, after one that warms up. Empty when `go_on` said no.
std::vector<double> decode_speeds(const std::shared_ptr<Model>& model,
                                  const std::vector<LayerPlan>& plans, ContextSettings settings,
                                  uint32_t n_tokens, uint32_t n_rounds,
                                  const std::function<bool()>& go_on = {});

}  // namespace pleat
