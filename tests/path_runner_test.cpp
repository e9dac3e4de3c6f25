#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "arch/registry.h"
#include "engine/path_runner.h"
#include "lab/prefill.h"
#include "lab/scorer.h"
#include "plan/spec.h"
#include "support/bits.h"
#include "support/pleat_run.h"
#include "support/random_models.h"
#include "support/random_tokens.h"
#include "support/stock.h"

// Decoding many plans together gives each what it gives alone.
namespace pleat::test {
namespace {

constexpr uint32_t n_ctx = 96;
constexpr size_t n_steps = 4;

/// The logits of a prompt's end and of some greedy steps after it.
using Steps = std::vector<Logits>;

Logits one_row(std::span<const float> logits) {
    return {.n_vocab = logits.size(), .values = {logits.begin(), logits.end()}};
}

ContextSettings with_flash(FlashAttention flash) {
    ContextSettings settings;
    settings.flash_attention = flash;
    settings.cache.n_ctx = n_ctx;
    return settings;
}

Steps alone(const std::shared_ptr<Model>& model, const LayerPlan& plan,
            const std::vector<int32_t>& prompt, const ContextSettings& settings) {
    Context context(model, plan, settings);
    Steps steps;
    std::vector<int32_t> tokens = prompt;
    for (size_t i = 0; i <= n_steps; ++i) {
        EXPECT_EQ(context.decode(0, tokens), DecodeStatus::ok);
        const auto logits = context.logits(0);
        steps.push_back(one_row(logits));
        tokens = {likeliest(logits)};
    }
    return steps;
}

/// Prompt q begins at step q, and sequence (plan p, prompt q) ends after some steps of its own, so
/// that the rows of a step change all the time. By plan, then prompt.
std::vector<std::vector<Steps>> together(const std::shared_ptr<Model>& model,
                                         const std::vector<LayerPlan>& plans,
                                         const std::vector<std::vector<int32_t>>& prompts,
                                         const ContextSettings& settings) {
    std::vector<std::vector<Steps>> found(plans.size(), std::vector<Steps>(prompts.size()));
    Prefill prefill(model, plans, settings, n_ctx);
    PathRunner runner(model, plans, static_cast<uint32_t>(prompts.size()), n_ctx, settings);
    const auto keep = [&](size_t plan, size_t prompt, std::span<const float> logits) {
        found[plan][prompt].push_back(one_row(logits));
    };
    for (size_t round = 0; round == 0 || !runner.sequences().empty(); ++round) {
        if (round < prompts.size()) {
            const size_t first = runner.sequences().size();
            for (uint32_t p = 0; p < plans.size(); ++p) {
                runner.begin(round, p, static_cast<uint32_t>(prompts[round].size()));
            }
            prefill.run(prompts[round],
                        {.on_pass = [&](size_t plan, size_t index, const PassRunner& from,
                                        size_t s) { runner.take(first + plan, index, from, s); },
                         .on_logits = [&](size_t plan,
                                          std::span<const float> l) { keep(plan, round, l); }});
        }
        std::vector<int32_t> tokens;
        for (const auto& s : runner.sequences()) {
            tokens.push_back(likeliest(found[s.plan][s.id].back().values));
        }
        runner.step(tokens);
        for (size_t row = tokens.size(); row-- > 0;) {
            const PathRunner::Sequence s = runner.sequences()[row];
            keep(s.plan, s.id, runner.logits(row));
            const size_t last = 2 + (s.plan + s.id) % (n_steps - 1);
            if (found[s.plan][s.id].size() == last + 1) runner.end(row);
        }
    }
    return found;
}

void expect_steps_as_alone(const std::string& path, const std::vector<std::string>& specs,
                           int n_vocab, const ContextSettings& settings) {
    start_stock();
    const auto model = open_model(path);
    std::vector<LayerPlan> plans;
    for (const std::string& spec : specs) {
        plans.push_back(LayerPlan::resolve(parse_spec(spec), model->shape()));
    }
    std::vector<std::vector<int32_t>> prompts;
    for (const uint32_t n : {24U, 41U, 12U}) prompts.push_back(random_tokens(n, n, n_vocab));
    const auto found = together(model, plans, prompts, settings);
    for (size_t p = 0; p < plans.size(); ++p) {
        for (size_t q = 0; q < prompts.size(); ++q) {
            const Steps expected = alone(model, plans[p], prompts[q], settings);
            ASSERT_GE(found[p][q].size(), 3U);
            for (size_t i = 0; i < found[p][q].size(); ++i) {
                SCOPED_TRACE(fmt::format("plan {}, prompt {}, step {}", specs[p], q, i));
                ASSERT_THAT(found[p][q][i], BitIdenticalTo(expected[i]));
            }
        }
    }
}

const std::vector<std::string> any_specs{
    "", "1,3", "0,2", "0,3", "drop-ffn:1", "skip:0", "layers:..,1,0[-ffn],..", "1,3+drop-ffn:2"};

class StepsOfModel : public testing::TestWithParam<NamedModel> {};

TEST_P(StepsOfModel, AreThoseOfEachPlanAlone) {
    const RandomModel& model = GetParam().model;
    for (const ggml_type type : {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0}) {
        SCOPED_TRACE(ggml_type_name(type));
        const TempFile& file = make_model(model, type);
        for (const FlashAttention flash : {FlashAttention::on, FlashAttention::off}) {
            if (flash == FlashAttention::off && type != GGML_TYPE_F32) continue;
            SCOPED_TRACE(flash == FlashAttention::on ? "flash attention" : "no flash attention");
            expect_steps_as_alone(file.path(), any_specs, model.n_vocab, with_flash(flash));
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Models, StepsOfModel, testing::ValuesIn(models_for_plans()),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace pleat::test
