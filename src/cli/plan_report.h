#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "plan/cost.h"
#include "plan/plan.h"
#include "plan/shape.h"

namespace pleat::cli {

/// `pleat plan`: passes, seams, inserted copies, costs with their ratio to the identity, warnings.
std::string plan_text(const LayerPlan& plan, const ModelShape& shape,
                      const CacheSettings& settings);
nlohmann::ordered_json plan_json(const LayerPlan& plan, const ModelShape& shape,
                                 const CacheSettings& settings);

/// The short form that every loading command prints: plan, seams, passes over layers, KV growth,
/// weights, warnings.
std::string load_log(const LayerPlan& plan, const ModelShape& shape, const CacheSettings& settings);

}  // namespace pleat::cli
