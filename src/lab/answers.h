#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/context.h"
#include "lab/probes.h"
#include "model/model.h"
#include "plan/plan.h"
#include "text/tokenizer.h"

namespace pleat {

/// How probes are answered by generation.
struct AnswerSettings {
    ContextSettings context;  ///< threads, flash attention, cache types
    /// Bytes of K/V, states, residual streams and compute buffers held at a time.
    uint64_t memory_budget = uint64_t{1} << 30U;
    uint32_t n_parallel = 128;  ///< sequences that are decoded together at most
};

/// What plans wrote to some probes.
struct ProbeAnswers {
    std::vector<std::vector<ProbeResult>> by_plan;  ///< in the order of the probes
    std::vector<std::vector<std::string>> texts;    ///< what was written, likewise
    uint64_t n_generated = 0;                       ///< tokens of all answers
    uint64_t peak_bytes = 0;                        ///< of what the budget is for
    bool complete = true;  ///< false: stopped, and then there are no results
};

/// What each plan writes to each probe, greedily, and what that is worth. All plans answer
/// together: a prompt's work that plans have in common is done once, and every step of decoding
/// takes one token of every sequence of every plan, grouped by layer. Models that a PathRunner does
/// not take are asked plan by plan, several questions at once. Either way a plan's answers are
/// those that it gives alone, but for the rounding of kernels that see another number of rows.
///
/// Plain probes end with their line, chat probes with the model's end of turn; both at the probe's
/// max_new_tokens. `progress` gets the fraction done; returning false stops. Throws Error when a
/// prompt does not fit into the model's context, a chat probe meets a model without a template, or
/// one question under one plan exceeds the budget.
ProbeAnswers answer_probes(const std::shared_ptr<Model>& model, std::span<const LayerPlan> plans,
                           const Tokenizer& tokenizer, std::span<const Probe> probes,
                           const AnswerSettings& settings,
                           const std::function<bool(double)>& progress = {});

}  // namespace pleat
