#include "lab/answers.h"

#include <utility>

#include "engine/path_runner.h"
#include "lab/answering.h"

namespace pleat {

bool Answering::take(size_t plan, size_t question, int32_t token) {
    if (answers[plan][question].take(questions[question], tokenizer, token)) return true;
    ++n_done;
    return false;
}

bool Answering::goes_on() const {
    const auto all = static_cast<double>(plans.size() * questions.size());
    return !progress || progress(static_cast<double>(n_done) / all);
}

ProbeAnswers answer_probes(const std::shared_ptr<Model>& model, std::span<const LayerPlan> plans,
                           const Tokenizer& tokenizer, std::span<const Probe> probes,
                           const AnswerSettings& settings,
                           const std::function<bool(double)>& progress) {
    const std::vector<Question> questions =
        make_questions(tokenizer, probes, model->hparams().n_ctx_train);
    Answering work{
        .model = model,
        .plans = plans,
        .tokenizer = tokenizer,
        .questions = questions,
        .settings = settings,
        .progress = progress,
        .answers = std::vector(plans.size(), std::vector<WrittenAnswer>(questions.size()))};
    ProbeAnswers result;
    result.complete = PathRunner::takes(*model) ? answer_together(work) : answer_plan_by_plan(work);
    result.peak_bytes = work.peak_bytes;
    if (!result.complete) return result;
    for (const std::vector<WrittenAnswer>& answers : work.answers) {
        auto& results = result.by_plan.emplace_back();
        auto& texts = result.texts.emplace_back();
        for (size_t q = 0; q < questions.size(); ++q) {
            texts.push_back(tokenizer.detokenize(answers[q].tokens, false));
            results.push_back(read_answer(*questions[q].probe, texts.back(), answers[q].end));
            result.n_generated += answers[q].tokens.size();
        }
    }
    return result;
}

}  // namespace pleat
