#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bake/pass_form.h"
#include "model/model.h"
#include "plan/plan.h"

/// Stock's architecture `deci` (Llama-3_1-Nemotron-51B and -Ultra) computes as `llama` does, but
/// takes its layers as they come: one with `attention.head_count` and `head_count_kv` 0 has no
/// attention and asks for none of its tensors. What limits it (found with libllama 0.7.0):
/// - the head size is that of the first layer, which must therefore have heads: a first pass
///   without attention is written with zeros instead
/// - a layer with `feed_forward_length` 0 loses its attention's result too, and, when it is the
///   last one, the choice of output rows: so only a pass without both sub-layers that is not the
///   last is written that way
/// - no experts, and the `.scale` tensors of an FFN are ignored
namespace pleat {

inline constexpr std::string_view deci_name = "deci";

/// Throws Error when the model, as far as the plan runs it, cannot be written as deci.
void check_deci(const Model& model, const LayerPlan& plan);

/// One form per pass. Adds a warning for each drop whose work stock will not save.
std::vector<PassForm> deci_forms(const LayerPlan& plan, std::vector<std::string>& warnings);

}  // namespace pleat
