#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "arch/registry.h"
#include "lab/answers.h"
#include "model/backend.h"
#include "plan/spec.h"

// Many plans answer as each does alone, on trained models.
namespace pleat {
namespace {

const std::string probes_file = PLEAT_MODELS_DIR "/../data/probes/arithmetic.jsonl";

class AnswersOfModel : public testing::TestWithParam<std::string> {};

TEST_P(AnswersOfModel, AreThoseOfEachPlanAloneWithinTheBudget) {
    load_backends(PLEAT_BACKEND_DIR);
    const std::string path = PLEAT_MODELS_DIR "/pleat-demo-" + GetParam() + "-q4_0.gguf";
    const auto model = open_model(path);
    const Tokenizer tokenizer = Tokenizer::open(path);
    std::vector<Probe> probes = read_probe_file(probes_file);
    probes.resize(6);
    std::vector<LayerPlan> plans;
    for (const char* const spec : {"", "3,5", "4,5", "6,8;4,5", "skip:6"}) {
        plans.push_back(LayerPlan::resolve(parse_spec(spec), model->shape()));
    }
    const ProbeAnswers wide = answer_probes(model, plans, tokenizer, probes, {.context = {}});
    // So little that plans and questions take turns.
    const AnswerSettings narrow{
        .context = {}, .memory_budget = uint64_t{32} << 20U, .n_parallel = 3};
    const ProbeAnswers cut = answer_probes(model, plans, tokenizer, probes, narrow);
    EXPECT_EQ(cut.by_plan, wide.by_plan);
    EXPECT_LE(cut.peak_bytes, narrow.memory_budget);
    EXPECT_LT(cut.peak_bytes, wide.peak_bytes);
    for (size_t p = 0; p < plans.size(); ++p) {
        const ProbeAnswers alone =
            answer_probes(model, std::span(&plans[p], 1), tokenizer, probes, {.context = {}});
        EXPECT_EQ(wide.by_plan[p], alone.by_plan.front()) << plans[p].canonical();
    }
    EXPECT_GT(summarize(wide.by_plan[0]).parsed, 0.5);
}

INSTANTIATE_TEST_SUITE_P(Models, AnswersOfModel,
                         testing::Values("llama-16L", "gemma3-12L", "qwen35-12L"),
                         [](const auto& of) { return of.param.substr(0, of.param.find('-')); });

TEST(Answers, OfAQuestionThatExceedsTheBudgetAreRefused) {
    load_backends(PLEAT_BACKEND_DIR);
    const std::string path = PLEAT_MODELS_DIR "/pleat-demo-llama-16L-q4_0.gguf";
    const auto model = open_model(path);
    const std::vector<LayerPlan> plans{LayerPlan::resolve({}, model->shape())};
    const std::vector<Probe> probes = read_probe_file(probes_file);
    try {
        answer_probes(model, plans, Tokenizer::open(path), probes,
                      {.context = {}, .memory_budget = 1000});
        FAIL() << "was accepted";
    } catch (const std::exception& e) {
        EXPECT_THAT(e.what(), testing::HasSubstr("more than the 1000 B that were allowed"));
    }
}

}  // namespace
}  // namespace pleat
