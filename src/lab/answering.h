#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "lab/answers.h"
#include "lab/questions.h"
#include "model/model.h"
#include "plan/plan.h"
#include "text/tokenizer.h"

namespace pleat {

/// Some questions to some plans, and the answers as they grow: what the two ways of asking share.
struct Answering {
    const std::shared_ptr<Model>& model;
    std::span<const LayerPlan> plans;
    const Tokenizer& tokenizer;
    std::span<const Question> questions;
    const AnswerSettings& settings;
    const std::function<bool(double)>& progress;
    std::vector<std::vector<WrittenAnswer>> answers;  ///< by plan, then question
    size_t n_done = 0;
    uint64_t peak_bytes = 0;

    /// False when the answer is at its end.
    bool take(size_t plan, size_t question, int32_t token);
    /// False when the caller wants no more.
    bool goes_on() const;
};

/// All plans together. False when stopped.
bool answer_together(Answering& work);
/// Plan by plan, sequences of a Context each. False when stopped.
bool answer_plan_by_plan(Answering& work);

}  // namespace pleat
