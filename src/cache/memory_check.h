#pragma once

#include "plan/cost.h"
#include "plan/plan.h"
#include "plan/shape.h"

namespace pleat {

/// Throws Error with both numbers when the plan's caches would not fit into free memory, before
/// anything is allocated. Weights that are mapped can be dropped by the system again; a cache
/// cannot.
void check_cache_memory(const LayerPlan& plan, const ModelShape& shape,
                        const CacheSettings& settings);

}  // namespace pleat
