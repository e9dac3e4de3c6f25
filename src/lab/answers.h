#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/context.h"
#include "lab/probes.h"
#include "model/model.h"
#include "plan/plan.h"
#include "text/tokenizer.h"

namespace pleat {

/// How probes are answered by generation.
struct AnswerSettings {
    ContextSettings context;   ///< threads, flash attention, cache types
    uint32_t n_parallel = 16;  ///< questions that are answered together
};

/// What a plan writes to each probe, greedily, and what that is worth; in the order of the probes.
/// Questions are answered together in sequences of one context, so kernels may round as they would
/// not for one question alone. Plain probes end with their line, chat probes with the model's end
/// of turn; both at the probe's max_new_tokens. `progress` gets the fraction done; returning false
/// stops, and then the result is empty. Throws Error when a prompt does not fit into the model's
/// context, or a chat probe meets a model without a template.
std::vector<ProbeResult> answer_probes(const std::shared_ptr<Model>& model, const LayerPlan& plan,
                                       const Tokenizer& tokenizer, std::span<const Probe> probes,
                                       const AnswerSettings& settings,
                                       const std::function<bool(double)>& progress = {});

}  // namespace pleat
