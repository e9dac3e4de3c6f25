#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "plan/shape.h"
#include "plan/spec.h"

namespace pleat {

/// The model that a profile was made for.
struct ModelCheck {
    std::string architecture;
    int64_t n_layer = 0;
    int64_t n_embd = 0;
    int64_t n_vocab = 0;
    bool operator==(const ModelCheck&) const = default;
};

struct PlanFile {
    Spec spec;
    std::optional<ModelCheck> model;  ///< only a profile names one, and not every profile
};

/// The version of the profile's schema that is read and written.
inline constexpr int64_t profile_schema = 1;

/// Reads what `--plan` names, told apart by content: a Pleat profile, a mergekit passthrough YAML
/// of one model, or a list of blocks to repeat. Throws Error of one line that names the file.
PlanFile read_plan_file(const std::string& path);

/// The same from text; `path` is for messages.
PlanFile parse_plan_file(std::string_view text, const std::string& path);

/// Throws Error that names the first field in which the model is another.
void check_model(const ModelCheck& made_for, const ModelShape& shape, const std::string& path);

}  // namespace pleat
