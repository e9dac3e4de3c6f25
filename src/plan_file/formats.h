#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "plan_file/plan_file.h"

namespace pleat {

// One reader per format; plan_file.cpp decides which. Each throws Error that names the file.

/// {"pleat_profile": 1, "plan": SPEC, "model": {...}}
PlanFile read_profile(const nlohmann::json& file, const std::string& path);

/// [{"start": 26, "end": 34, "count": 2}]: half-open, count = traversals in all.
Spec read_block_list(const nlohmann::json& file, const std::string& path);

/// mergekit: `slices` of layer ranges, half-open and concatenated, of one model, passed through.
Spec read_mergekit(std::string_view text, const std::string& path);

}  // namespace pleat
