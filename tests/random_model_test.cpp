#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "support/bits.h"
#include "support/random_models.h"
#include "support/random_tokens.h"
#include "support/stock.h"

// Random models of every architecture, as stock takes them.
namespace pleat::test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr size_t n_prefill = 18;  // past the windows of 16
constexpr size_t n_tokens = 24;

Logits run(const TempFile& file, const RandomModel& model) {
    return stock_logits(file.path(), random_tokens(7, n_tokens, model.n_vocab), n_prefill);
}

void expect_sound(const Logits& logits) {
    EXPECT_EQ(degeneracy(logits), std::nullopt);
    EXPECT_EQ(logits.rows(), n_tokens);
    EXPECT_GT(spread(logits), 1.0);
    EXPECT_LT(spread(logits), 4.0);
    for (size_t i = 1; i < logits.rows(); ++i) {
        EXPECT_FALSE(std::ranges::equal(logits.row(i), logits.row(i - 1))) << "row " << i;
    }
}

class ArchitectureModels : public testing::TestWithParam<NamedModel> {};

TEST_P(ArchitectureModels, GiveSoundLogits) {
    const RandomModel& model = GetParam().model;
    expect_sound(run(make_model(model), model));
}

INSTANTIATE_TEST_SUITE_P(All, ArchitectureModels, testing::ValuesIn(architecture_models()),
                         [](const auto& param) { return param.param.name; });

const RandomModel& model_named(const std::string& name) {
    const auto& models = architecture_models();
    return std::ranges::find(models, name, &NamedModel::name)->model;
}

struct Change {
    std::string name;  ///< of the model that is changed
    std::function<void(RandomModel&)> change;
};

TEST(ArchitectureSettings, EachChangeWhatStockComputes) {
    const std::vector<Change> changes{
        {"qwen2_without_biases", [](auto& m) { m.biases = true; }},
        {"qwen2_without_biases", [](auto& m) { m.scales = true; }},
        {"qwen2_without_biases", [](auto& m) { m.rope_scaling = "yarn"; }},
        {"qwen3", [](auto& m) { m.biases = true; }},
        {"qwen3", [](auto& m) { m.scales = true; }},
        {"gemma3", [](auto& m) { m.n_rot = 16; }},
        {"qwen3moe", [](auto& m) { m.biases = true; }},
        {"qwen3moe", [](auto& m) { m.scales = true; }},
        {"qwen3moe", [](auto& m) { m.n_expert_used = 4; }},
        {"qwen3moe", [](auto& m) { m.n_ff_exp = 96; }},
        {"gemma3", [](auto& m) { m.n_swa = 0; }},
        {"gemma3", [](auto& m) { m.n_swa = 15; }},
        {"gemma3", [](auto& m) { m.window_pattern = 5; }},
        {"gemma3", [](auto& m) { m.rope_scaling = ""; }},
        {"gemma3", [](auto& m) { m.rope_freq_base = 1e5F; }},
        {"gemma3", [](auto& m) { m.rope_freq_base_swa = 20000; }},
        {"gemma3", [](auto& m) { m.softcap = 5; }},
        {"gemma3", [](auto& m) { m.biases = true; }},
        {"gemma3", [](auto& m) { m.scales = true; }},
        {"gemma4", [](auto& m) { m.head_dim_swa = 64; }},
        {"gemma4", [](auto& m) { m.n_swa = 15; }},
        {"gemma4", [](auto& m) { m.softcap = 10; }},
        {"gemma4", [](auto& m) { m.n_head_kv_per_layer = {2, 2, 1, 2, 2, 1}; }},
        {"gemma4", [](auto& m) { m.n_ff_per_layer = {256, 256, 256, 256, 256, 128}; }},
        {"gemma4", [](auto& m) { m.n_embd_per_layer = 24; }},
        {"gemma4", [](auto& m) { m.n_shared_kv = 3; }},
        {"gemma4", [](auto& m) { m.v_from_k = true; }},
        {"gemma4", [](auto& m) { m.layer_output_scale = true; }},
        {"gemma4", [](auto& m) { m.scales = true; }},
        {"gemma4", [](auto& m) { m.n_rot = 32; }},
        {"gemma4", [](auto& m) { m.n_expert = m.n_expert_used = 1; }},
        {"gemma4_experts", [](auto& m) { m.merged_experts = true; }},
        {"qwen35", [](auto& m) { m.full_attention_interval = 2; }},
        {"qwen35", [](auto& m) { m.n_rot = 32; }},
        {"qwen35", [](auto& m) { m.ssm_n_group = 2; }},
        {"qwen35", [](auto& m) { m.ssm_n_head = 8; }},
        {"qwen35", [](auto& m) { m.ssm_state_size = 16; }},
        {"qwen35", [](auto& m) { m.ssm_conv_kernel = 3; }},
        {"qwen35", [](auto& m) { m.biases = true; }},
        {"qwen35", [](auto& m) { m.scales = true; }},
        {"qwen35moe_odd_tied", [](auto& m) { m.n_ff_shexp = 64; }},
        {"qwen35moe_odd_tied", [](auto& m) { m.merged_experts = true; }},
    };
    for (size_t i = 0; i < changes.size(); ++i) {
        const RandomModel& plain = model_named(changes[i].name);
        RandomModel changed = plain;
        changes[i].change(changed);
        SCOPED_TRACE(describe(changed));
        const Logits logits = run(make_model(changed), changed);
        expect_sound(logits);
        EXPECT_THAT(logits, Not(BitIdenticalTo(run(make_model(plain), plain))));
    }
}

TEST(ArchitectureSettings, SayWhatStocksRulesSay) {
    const std::vector<Change> changes{
        {"gemma3", [](auto& m) { m.window_pattern = 6; }},
        {"gemma3", [](auto& m) { m.rope_freq_base_swa = 10000; }},
        {"gemma3_pattern_number",
         [](auto& m) {
             m.window_pattern = 0;
             m.window_layers = {true, true, false, true, true, false};
         }},
        {"gemma4", [](auto& m) { m.softcap = 0; }},
        {"gemma4", [](auto& m) { m.n_head_kv_per_layer = {2, 2, 2, 2, 2, 2}; }},
        {"gemma4_shared_kv", [](auto& m) { m.unused_kv = true; }},
        {"qwen35", [](auto& m) { m.full_attention_interval = 4; }},
        {"qwen35",
         [](auto& m) { m.recurrent_layers = {true, true, true, false, true, true, true, false}; }},
        {"qwen35", [](auto& m) { m.mtp = true; }},
        {"qwen35_array_mtp", [](auto& m) { m.mtp = false; }},
    };
    for (const Change& change : changes) {
        const RandomModel& plain = model_named(change.name);
        RandomModel changed = plain;
        change.change(changed);
        SCOPED_TRACE(describe(changed));
        EXPECT_THAT(run(make_model(changed), changed),
                    BitIdenticalTo(run(make_model(plain), plain)));
    }
}

TEST(ArchitectureSettings, ThatMeanNothingOrContradictEachOtherAreRefused) {
    const auto refusal = [](const RandomModel& model) -> std::string {
        try {
            make_model(model);
            return "taken";
        } catch (const Error& error) {
            return error.what();
        }
    };
    RandomModel gemma4 = model_named("gemma4_shared_kv");
    RandomModel qwen35 = model_named("qwen35");
    EXPECT_EQ(refusal({.architecture = "mamba"}), "no random model has the architecture mamba");
    EXPECT_EQ(refusal({.softcap = 30}), "llama has no softcap 30");
    EXPECT_EQ(refusal({.architecture = "qwen2", .n_expert = 2, .n_expert_used = 1}),
              "qwen2 has no experts 1/2");
    EXPECT_EQ(refusal({.architecture = "gemma3", .mtp = true}), "gemma3 has no mtp");
    EXPECT_EQ(refusal({.architecture = "qwen3", .rope_scaling = "longrope"}),
              "qwen3 has no longrope");
    EXPECT_EQ(refusal({.architecture = "qwen3moe"}), "qwen3moe needs experts");
    EXPECT_EQ(refusal({.architecture = "gemma3", .window_pattern = 3}),
              "a pattern of window layers without n_swa");
    EXPECT_EQ(refusal({.architecture = "gemma3", .n_swa = 16, .window_layers = {true}}),
              "window_layers has 1 entries for 4 layers");
    EXPECT_EQ(refusal({.architecture = "gemma4"}), "gemma4 needs n_swa and window_layers");
    gemma4.n_shared_kv = 2;
    EXPECT_EQ(refusal(gemma4), "layer 4 cannot read the K/V of layer 2");
    EXPECT_EQ(refusal({.architecture = "qwen35"}),
              "0 value heads over 0 key heads of size 0 with a kernel of 4 are no qwen35");
    qwen35.ssm_n_group = 3;
    EXPECT_THAT(refusal(qwen35), HasSubstr("4 value heads over 3 key heads"));
}

TEST(ArchitectureFiles, AreMadeByStocksQuantiser) {
    for (const char* name : {"qwen2", "qwen3", "qwen3moe", "gemma3", "gemma4_shared_kv",
                             "gemma4_merged_experts", "qwen35", "qwen35moe_merged"}) {
        RandomModel model = model_named(name);
        model.n_embd = 256;
        model.n_ff = 256;
        if (model.n_ff_exp != 0) model.n_ff_exp = 256;
        if (!model.n_ff_per_layer.empty()) std::ranges::fill(model.n_ff_per_layer, 512);
        SCOPED_TRACE(describe(model));
        expect_sound(run(make_model(model, LLAMA_FTYPE_MOSTLY_Q4_K_M), model));
        EXPECT_THAT(stock_log(), HasSubstr("q4_K:"));
    }
}

}  // namespace
}  // namespace pleat::test
