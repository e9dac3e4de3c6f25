#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "serve/engine.h"

namespace pleat {

/// What a variant's metrics are made of.
struct VariantMetrics {
    std::string name = {};
    std::string plan = {};
    std::string plan_hash = {};
    uint64_t cache_bytes = 0;
};

struct MetricsInput {
    EngineCounters counters = {};
    std::vector<SlotState> slots = {};
    std::vector<VariantMetrics> variants = {};  ///< by SlotState::variant
    uint64_t weight_bytes = 0;                  ///< loaded
    uint64_t n_tokens_max = 0;                  ///< the longest sequence so far
};

/// Prometheus' text format 0.0.4. What llama-server has, under its names (`llamacpp:`), so that its
/// dashboards work; what it does not have, and what is told by variant, as `pleat:`.
std::string metrics_text(const MetricsInput& input);

/// A label's value with backslashes, quotes and line ends escaped.
std::string label_text(std::string_view value);

}  // namespace pleat
