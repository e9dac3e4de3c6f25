#include "lab/similarity.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "arch/registry.h"
#include "support/pleat_run.h"
#include "support/random_models.h"
#include "support/random_tokens.h"
#include "support/stock.h"

// The similarity of a sub-layer's input and output against the nodes of stock's graph.
namespace pleat::test {
namespace {

/// F32 nodes by name, as stock computed them.
using Nodes = std::map<std::string, std::vector<float>>;

bool keep_node(ggml_tensor* tensor, bool ask, void* data) {
    const std::string name = tensor->name;
    const bool wanted = name == "embd" || name == "model.input_embed" || name == "inp_scaled" ||
                        name.starts_with("ffn_inp-") || name.starts_with("attn_residual-") ||
                        name.starts_with("sa_out-") || name.starts_with("l_out-");
    if (ask) return wanted;
    if (!wanted || tensor->type != GGML_TYPE_F32) return true;
    std::vector<float>& values = (*static_cast<Nodes*>(data))[name];
    values.resize(static_cast<size_t>(ggml_nelements(tensor)));
    ggml_backend_tensor_get(tensor, values.data(), 0, ggml_nbytes(tensor));
    return true;
}

double mean_cosine(const std::vector<float>& a, const std::vector<float>& b, size_t width) {
    double sum = 0.0;
    const size_t n = a.size() / width;
    for (size_t t = 0; t < n; ++t) {
        double ab = 0.0;
        double aa = 0.0;
        double bb = 0.0;
        for (size_t i = t * width; i < (t + 1) * width; ++i) {
            ab += static_cast<double>(a[i]) * b[i];
            aa += static_cast<double>(a[i]) * a[i];
            bb += static_cast<double>(b[i]) * b[i];
        }
        sum += ab / std::sqrt(aa * bb);
    }
    return sum / static_cast<double>(n);
}

/// What stock calls the streams of a model.
struct Names {
    std::string embedding;
    std::string after_attention;
};

void expect_as_in_stock(const RandomModel& random, const Names& names) {
    start_stock();
    const std::string path = make_model(random).path();
    const auto tokens = random_tokens(7, 64, random.n_vocab);
    Nodes nodes;
    StockSettings settings;
    settings.on_node = keep_node;
    settings.on_node_data = &nodes;
    const Stock stock(path);
    StockContext context = stock.context(settings);
    context.decode(stock_batch(tokens));

    const auto model = open_model(path);
    const std::vector<std::vector<int32_t>> sequences{tokens, tokens, tokens};
    const auto found = layer_similarity(model, {}, 128, sequences);
    ASSERT_EQ(found.size(), static_cast<size_t>(random.n_layer));
    const auto width = static_cast<size_t>(random.n_embd);
    std::string before = names.embedding;
    for (int layer = 0; layer < random.n_layer; ++layer) {
        SCOPED_TRACE(layer);
        const std::string middle = fmt::format("{}-{}", names.after_attention, layer);
        const std::string after = fmt::format("l_out-{}", layer);
        ASSERT_EQ(nodes[before].size(), tokens.size() * width) << before;
        ASSERT_EQ(nodes[middle].size(), tokens.size() * width) << middle;
        ASSERT_EQ(nodes[after].size(), tokens.size() * width) << after;
        const auto i = static_cast<size_t>(layer);
        EXPECT_NEAR(found[i].attention, mean_cosine(nodes[before], nodes[middle], width), 1e-6);
        EXPECT_NEAR(found[i].ffn, mean_cosine(nodes[middle], nodes[after], width), 1e-6);
        before = after;
    }
}

const RandomModel& model_named(const std::string& name) {
    for (const NamedModel& named : architecture_models()) {
        if (named.name == name) return named.model;
    }
    throw std::runtime_error("no model " + name);
}

TEST(LayerSimilarity, IsThatOfStocksStreams) {
    expect_as_in_stock({}, {.embedding = "embd", .after_attention = "ffn_inp"});
}

TEST(LayerSimilarity, OfAHybridIncludesTheRecurrentLayers) {
    expect_as_in_stock(model_named("qwen35"),
                       {.embedding = "model.input_embed", .after_attention = "attn_residual"});
}

TEST(LayerSimilarity, KnowsWhereSubLayersCannotRunApart) {
    start_stock();
    EXPECT_FALSE(has_separate_sublayers(*open_model(make_model(model_named("gemma4")).path())));
    const auto model = open_model(make_model(model_named("gemma4_shared_kv")).path());
    EXPECT_FALSE(has_separate_sublayers(*model));
    EXPECT_ANY_THROW(layer_similarity(model, {}, 64, {}));
}

TEST(LayerSimilarity, CanBeStopped) {
    start_stock();
    const auto model = open_model(make_model({}).path());
    const std::vector<std::vector<int32_t>> sequences{random_tokens(7, 16, 512)};
    EXPECT_TRUE(layer_similarity(model, {}, 64, sequences, [](double) { return false; }).empty());
}

TEST(SumOfCosines, IsOneForEqualAndZeroForNothing) {
    const std::vector<float> a{1, 0, 3, 4, 0, 0};
    const std::vector<float> b{2, 0, -4, 3, 1, 1};
    EXPECT_DOUBLE_EQ(sum_of_cosines(a, b, 2), 1.0);
    EXPECT_DOUBLE_EQ(sum_of_cosines(a, a, 2), 2.0);
}

}  // namespace
}  // namespace pleat::test
