#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "plan/spec.h"
#include "plan_file/fingerprint.h"

namespace pleat {

struct PlanFile {
    Spec spec;
    std::optional<Fingerprint> model;  ///< only a profile names one, and not every profile
};

/// The version of the profile's schema that is read and written.
inline constexpr int64_t profile_schema = 1;

/// Reads what `--plan` names, told apart by content: a Pleat profile, a mergekit passthrough YAML
/// of one model, or a list of blocks to repeat. Throws Error of one line that names the file.
PlanFile read_plan_file(const std::string& path);

/// The same from text; `path` is for messages.
PlanFile parse_plan_file(std::string_view text, const std::string& path);

}  // namespace pleat
