#pragma once

#include <string>
#include <vector>

#include "bake/pass_form.h"
#include "gguf/value.h"
#include "model/model.h"
#include "plan/plan.h"

namespace pleat {

inline constexpr std::string_view plan_key = "pleat.plan";

/// The baked file's metadata under the architecture's name; bake.h says what changes. `forms` has
/// one entry per pass; what a form leaves out is 0 in the arrays of head counts and FFN widths.
std::vector<gguf::KeyValue> baked_metadata(const Model& model, const LayerPlan& plan,
                                           const std::vector<PassForm>& forms,
                                           const std::string& architecture);

}  // namespace pleat
