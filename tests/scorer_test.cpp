#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "arch/registry.h"
#include "lab/perplexity.h"
#include "lab/scorer.h"
#include "plan/spec.h"
#include "support/pleat_run.h"
#include "support/random_models.h"
#include "support/random_tokens.h"
#include "support/stock.h"

// Scoring plans together gives each the score that it has alone.
namespace pleat::test {
namespace {

std::vector<LayerPlan> plans_of(const Model& model, const std::vector<std::string>& specs) {
    std::vector<LayerPlan> plans;
    for (const std::string& spec : specs) {
        plans.push_back(LayerPlan::resolve(parse_spec(spec), model.shape()));
    }
    return plans;
}

ContextSettings one_thread() {
    ContextSettings settings;
    settings.cache.n_ubatch = 128;
    settings.n_batch = 128;  // so that chunks of 64 are not cut
    return settings;
}

/// What `pleat perplexity` computes for the plan alone.
Perplexity alone(const std::shared_ptr<Model>& model, const LayerPlan& plan,
                 const std::vector<int32_t>& tokens, uint32_t n_ctx) {
    ContextSettings settings = one_thread();
    settings.cache.n_ctx = n_ctx;
    settings.cache.n_seq = perplexity_sequences(n_ctx, settings.n_batch);
    Context context(model, plan, settings);
    return perplexity(context, tokens, n_ctx, -1);
}

double mean(const ItemScores& items) {
    double sum = 0.0;
    double weight = 0.0;
    for (size_t i = 0; i < items.size(); ++i) {
        sum += items.sum[i];
        weight += items.weight[i];
    }
    return sum / weight;
}

/// All plans in one scoring, each against itself alone. Chunks of 64 tokens are multiples of what
/// kernels group rows by, so the two agree in every bit and only the order of sums may differ.
void expect_scores_as_alone(const std::string& path, const std::vector<std::string>& specs,
                            int n_vocab) {
    start_stock();
    const auto model = open_model(path);
    const auto plans = plans_of(*model, specs);
    const auto tokens = random_tokens(5, 64 * 5, n_vocab);
    Workload workload;
    workload.add_text("text", tokens, 64, -1);
    const Scorer scorer(model, {.context = one_thread(), .rows_per_batch = 128});
    const PlanScores scores = scorer.score(plans, workload);
    ASSERT_EQ(scores.by_plan.size(), plans.size());
    for (size_t p = 0; p < plans.size(); ++p) {
        SCOPED_TRACE(specs[p]);
        const double expected = alone(model, plans[p], tokens, 64).value;
        EXPECT_NEAR(std::exp(mean(scores.by_plan[p][0])), expected, 1e-12 * expected);
    }
}

const std::vector<std::string> any_specs{
    "", "1,3", "0,2", "0,3", "drop-ffn:1", "skip:0", "layers:..,1,0[-ffn],.."};

class ScoresOfModel : public testing::TestWithParam<NamedModel> {};

TEST_P(ScoresOfModel, AreThoseOfEachPlanAlone) {
    const RandomModel& model = GetParam().model;
    for (const ggml_type type : {GGML_TYPE_F32, GGML_TYPE_Q8_0}) {
        SCOPED_TRACE(ggml_type_name(type));
        expect_scores_as_alone(make_model(model, type).path(), any_specs, model.n_vocab);
    }
}

INSTANTIATE_TEST_SUITE_P(Models, ScoresOfModel, testing::ValuesIn(models_for_plans()),
                         [](const auto& param) { return param.param.name; });

TEST(Scores, OfModelsThatShareKvAreThoseOfEachPlanAlone) {
    for (const NamedModel& named : architecture_models()) {
        if (named.name != "gemma4_shared_kv") continue;
        expect_scores_as_alone(make_model(named.model).path(), {"", "drop-ffn:1", "drop:0"},
                               named.model.n_vocab);
    }
}

TEST(Scores, DoNotDependOnTheMemoryBudget) {
    start_stock();
    const auto model = open_model(make_model({.n_layer = 6}).path());
    std::vector<std::string> specs{""};
    for (int i = 0; i < 6; ++i) {
        for (int j = i + 1; j <= 6; ++j) specs.push_back(fmt::format("{},{}", i, j));
    }
    const auto plans = plans_of(*model, specs);
    Workload workload;
    workload.add_text("text", random_tokens(5, 64 * 4, 512), 64, -1);
    const uint64_t stream = 64 * 256 * sizeof(float);
    const Scorer wide(model, {.context = one_thread(), .memory_budget = 1000 * stream});
    const Scorer tight(model, {.context = one_thread(), .memory_budget = 6 * stream});
    const PlanScores expected = wide.score(plans, workload);
    const PlanScores found = tight.score(plans, workload);
    EXPECT_EQ(found.by_plan, expected.by_plan);
    EXPECT_LE(found.peak_bytes, 6 * stream);
    EXPECT_GT(expected.peak_bytes, 6 * stream);
    const Scorer none(model, {.context = one_thread(), .memory_budget = stream});
    EXPECT_ANY_THROW(none.score(plans, workload));
}

TEST(Scores, KlAndTop1AreOfTheIdentityPlan) {
    start_stock();
    const auto model = open_model(make_model({}).path());
    const auto plans = plans_of(*model, {"", "layers:0..3", "1,3"});
    Workload workload;
    workload.add_text("text", random_tokens(5, 64 * 2, 512), 64, -1);
    const PlanScores scores = Scorer(model, {.context = one_thread()}).score(plans, workload);
    EXPECT_EQ(mean(scores.by_plan[0][1]), 0.0);
    EXPECT_EQ(mean(scores.by_plan[0][2]), 1.0);
    EXPECT_EQ(mean(scores.by_plan[1][1]), 0.0);  // the identity in other words
    EXPECT_GT(mean(scores.by_plan[2][1]), 0.01);
    EXPECT_LT(mean(scores.by_plan[2][2]), 1.0);
}

TEST(Scores, KlDivergenceIsWhatItsDefinitionSays) {
    // p = (1/2, 1/4, 1/4), q = (1/4, 1/4, 1/2): sum p log(p / q) = 1/2 ln 2 - 1/4 ln 2.
    const std::vector<float> p{std::log(2.0F), 0.0F, 0.0F};
    const std::vector<float> q{0.0F, 0.0F, std::log(2.0F)};
    EXPECT_NEAR(kl_divergence(p, q), 0.25 * std::log(2.0), 1e-7);
    EXPECT_EQ(kl_divergence(p, p), 0.0);
}

TEST(Scores, OfProbesDoNotDependOnTheOthersInTheirBatch) {
    start_stock();
    const std::string path = PLEAT_MODELS_DIR "/pleat-demo-llama-16L-q4_0.gguf";
    const auto model = open_model(path);
    const Tokenizer tokenizer = Tokenizer::open(path);
    std::vector<Probe> probes;
    for (int i = 0; i < 12; ++i) {
        probes.push_back({.id = fmt::format("p{}", i),
                          .kind = i % 2 == 0 ? "sum" : "other",
                          .prompt = fmt::format("{} + {} =", 10 + i, 20 + 3 * i),
                          .answer = fmt::format(" {}", 30 + 4 * i)});
    }
    Workload all;
    all.add_probes(probes, tokenizer);
    EXPECT_THAT(
        all.measures(),
        testing::ElementsAre(Measure{"exact:sum", true}, Measure{"answer_nll:sum", false},
                             Measure{"exact:other", true}, Measure{"answer_nll:other", false}));
    const auto plans = plans_of(*model, {"", "6,9"});
    const Scorer scorer(model, {.context = one_thread()});
    const PlanScores together = scorer.score(plans, all);
    for (size_t i = 0; i < probes.size(); ++i) {
        const std::vector<size_t> one{i};
        const PlanScores apart = scorer.score({plans[1]}, all, one);
        const size_t m = i % 2 == 0 ? 0 : 2;
        EXPECT_EQ(apart.by_plan[0][m].sum[0], together.by_plan[1][m].sum[i / 2]);
        EXPECT_NEAR(apart.by_plan[0][m + 1].sum[0], together.by_plan[1][m + 1].sum[i / 2], 1e-4);
    }
    // The model was trained to add, so most answers are right.
    EXPECT_GE(mean(together.by_plan[0][0]), 0.5);
}

TEST(Scores, CanBeStopped) {
    start_stock();
    const auto model = open_model(make_model({}).path());
    Workload workload;
    workload.add_text("text", random_tokens(5, 64 * 8, 512), 64, -1);
    int calls = 0;
    const PlanScores scores =
        Scorer(model, {.context = one_thread()})
            .score(plans_of(*model, {""}), workload, {}, [&](double) { return ++calls < 3; });
    EXPECT_FALSE(scores.complete);
    EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace pleat::test
