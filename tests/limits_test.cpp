#include <ggml.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "arch/registry.h"
#include "base/error.h"
#include "cache/kv_cache.h"
#include "cache/state_cache.h"
#include "graph/builder.h"
#include "support/pleat_run.h"
#include "support/random_model.h"
#include "support/random_models.h"
#include "support/random_tokens.h"

// Where ggml would end the process, or memory would: nothing gets near.
namespace pleat::test {
namespace {

using testing::HasSubstr;

RandomModel named(const std::string& name) {
    const auto at = std::ranges::find(architecture_models(), name, &NamedModel::name);
    if (at == architecture_models().end()) throw Error("no model " + name);
    return at->model;
}

template <typename Function>
std::string error_of(Function&& function) {
    try {
        function();
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

class LongestPlan : public testing::TestWithParam<NamedModel> {};

/// Every node a pass can have: factors, quantised K/V that is turned, V transposed, states of
/// sequences that lie anywhere.
TEST_P(LongestPlan, FillsLessThanHalfOfItsGraph) {
    start_stock();
    const auto model = open_model(make_model(GetParam().model).path());
    std::string spec = "layers:";
    for (int i = 0; i < 8; ++i) spec += i == 0 ? "..[scale=0.5]" : ",..[scale=0.5]";
    const LayerPlan plan = LayerPlan::resolve(parse_spec(spec), model->shape());
    ASSERT_EQ(plan.size(), 8 * model->hparams().n_layer);
    model->load(plan);
    for (const bool flash : {true, false}) {
        CacheSettings settings{.n_ctx = 256, .n_seq = 4, .n_ubatch = 8, .kv_unified = true};
        settings.flash_attention = flash;
        const bool whole_blocks = model->hparams().layers.front().head_dim_k % 64 == 0 &&
                                  model->hparams().layers.back().head_dim_k % 64 == 0;
        if (whole_blocks) settings.type_k = cache_type("q8_0");
        if (whole_blocks && flash) settings.type_v = cache_type("q8_0");
        const KvCache full(plan, model->shape(), settings, CacheKind::full);
        const KvCache window(plan, model->shape(), settings, CacheKind::window);
        const StateCache states(plan, model->shape(), settings);
        const GraphShape shape{.n_tokens = 8,
                               .n_outputs = 3,
                               .n_kv_full = full.empty() ? 0 : full.n_cells(),
                               .n_kv_window = window.empty() ? 0 : window.n_cells(),
                               .n_seqs = model->hparams().delta_net ? 2U : 1U,
                               .first_state = -1};
        const Graph graph =
            GraphBuilder(*model, plan, {full, window, states}, rope_factors(*model, 256), shape)
                .build();
        EXPECT_LT(2 * ggml_graph_n_nodes(graph.nodes), ggml_graph_size(graph.nodes));
        EXPECT_LT(ggml_used_mem(graph.context.get()), ggml_get_mem_size(graph.context.get()));
    }
}

std::vector<NamedModel> node_hungry_models() {
    std::vector<NamedModel> models;
    for (const NamedModel& model : architecture_models()) {
        if (model.model.n_layer <= 12) models.push_back(model);
    }
    RandomModel gemma4 = named("gemma4_experts");
    gemma4.head_dim = 128;
    gemma4.head_dim_swa = 64;
    gemma4.n_embd_per_layer = 32;
    gemma4.n_shared_kv = 1;
    gemma4.window_layers = {true, false, false};
    models.push_back({"gemma4_everything", gemma4});
    RandomModel qwen35moe = named("qwen35moe_merged");
    qwen35moe.scales = true;
    qwen35moe.biases = true;
    qwen35moe.n_expert = 64;
    qwen35moe.n_expert_used = 64;
    qwen35moe.full_attention_interval = 2;
    models.push_back({"qwen35moe_all_experts", qwen35moe});
    return models;
}

INSTANTIATE_TEST_SUITE_P(Models, LongestPlan, testing::ValuesIn(node_hungry_models()),
                         [](const auto& param) { return param.param.name; });

TEST(Context, RefusesMoreCellsThanMemoryHoldsAlsoWithoutKv) {
    const RandomModel small{
        .n_layer = 2, .n_embd = 64, .n_head = 4, .n_head_kv = 2, .n_ff = 96, .n_vocab = 80};
    start_stock();
    const auto model = open_model(make_model(small).path());
    ContextSettings settings;
    settings.cache.n_ctx = 1U << 24;
    settings.cache.n_seq = 256;  // 2^32 cells, which once were 0 tokens in a batch
    EXPECT_THAT(error_of([&] {
                    Context(model, LayerPlan::resolve(parse_spec("drop:0,1"), model->shape()),
                            settings);
                }),
                HasSubstr("of memory are free; ask for a smaller context with -c"));
}

TEST(Context, RefusesAQuantisedCacheThatItsHeadsCannotBeTurnedFor) {
    // The full layers' rows: 2 heads of 96 are three groups of 64, one is not.
    RandomModel model = named("gemma4_kv_heads_v_from_k");
    model.head_dim_swa = 64;
    model.head_dim = 96;
    model.n_head_kv_per_layer = {4, 2, 4, 1};
    const std::string path = make_model(model).path();
    EXPECT_EQ(
        error_of(
            [&] { pleat_context(path, "", {.type_k = GGML_TYPE_Q8_0, .type_v = GGML_TYPE_Q8_0}); }),
        "a quantised K/V cache (q8_0) is turned 64 values at a time in this model, but a layer "
        "has 1 K/V heads of 96 values: use f16 for both");
}

TEST(Context, RemovesNothingFromAnEmptyRangeOfAHybrid) {
    const auto context = pleat_context(make_model(named("qwen35")).path());
    ASSERT_EQ(context->decode(0, random_tokens(1, 10, 384)), DecodeStatus::ok);
    context->remove(0, 5, 5);
    context->remove(0, 7, 3);
    EXPECT_EQ(context->next_position(0), 10);
    EXPECT_THAT(error_of([&] { context->remove(0, 5); }),
                HasSubstr("positions 5 to 9 of sequence 0 cannot be removed"));
}

}  // namespace
}  // namespace pleat::test
