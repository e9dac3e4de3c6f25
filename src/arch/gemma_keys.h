#pragma once

#include <vector>

#include "arch/keys.h"
#include "gguf/value.h"
#include "model/hparams.h"
#include "plan/plan.h"

/// What the gemma families' metadata have in common.
namespace pleat {

/// Which layers have a window: the array of `attention.sliding_window_pattern`, or its number p (or
/// the default): every p-th layer has none. A default of 0: there must be an array.
std::vector<bool> window_pattern(const Keys& keys, const Hparams& h, uint32_t default_period);

/// Makes these layers local_attention with the window layers' own RoPE base.
void set_window_layers(const Keys& keys, Hparams& h, const std::vector<bool>& window);

/// The pattern of a file of the plan's passes, as an array. Throws Error when the path has no
/// window layer, which stock does not run.
std::vector<gguf::KeyValue> baked_window_pattern(const Hparams& h, const LayerPlan& plan);

/// `final_logit_softcapping`: 0 = off.
float read_softcap(const Keys& keys, float fallback);

}  // namespace pleat
