#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "serve/pooling.h"
#include "support/engine_run.h"
#include "support/random_model.h"
#include "support/random_models.h"
#include "support/random_tokens.h"
#include "support/stock.h"

// Embeddings are stock's, bit for bit, where a text is one ubatch on both sides.
namespace pleat::test {
namespace {

using testing::HasSubstr;

using StockPooling = enum llama_pooling_type;  // there is a function of the same name

constexpr size_t n_tokens = 40;

/// What libllama makes of one sequence with a pooling type: a row, or without pooling one a token.
std::vector<std::vector<float>> stock_embeddings(const std::string& path,
                                                 const std::vector<int32_t>& tokens,
                                                 StockPooling pooling) {
    const Stock stock(path);
    llama_context_params params = llama_context_default_params();
    params.n_ctx = 512;
    params.n_threads = 1;
    params.n_threads_batch = 1;
    params.embeddings = true;
    params.pooling_type = pooling;
    params.swa_full = false;
    const llama_context_ptr context(llama_init_from_model(stock.model(), params));
    const auto n = static_cast<int32_t>(tokens.size());
    llama_batch batch = llama_batch_init(n, 0, 1);
    for (int32_t i = 0; i < n; ++i) {
        batch.token[i] = tokens[static_cast<size_t>(i)];
        batch.pos[i] = i;
        batch.n_seq_id[i] = 1;
        batch.seq_id[i][0] = 0;
        batch.logits[i] = 1;
    }
    batch.n_tokens = n;
    EXPECT_EQ(llama_decode(context.get(), batch), 0);
    llama_batch_free(batch);
    const auto row = [&](const float* values) {
        return std::vector<float>(values, values + stock.n_embd());
    };
    if (pooling != LLAMA_POOLING_TYPE_NONE) {
        return {row(llama_get_embeddings_seq(context.get(), 0))};
    }
    std::vector<std::vector<float>> rows;
    for (int32_t i = 0; i < n; ++i) rows.push_back(row(llama_get_embeddings_ith(context.get(), i)));
    return rows;
}

std::vector<std::vector<float>> our_embeddings(const std::string& path,
                                               const std::vector<int32_t>& tokens,
                                               std::optional<Pooling> pooling, uint32_t chunk) {
    EngineSettings settings = engine_settings(2, 512, chunk);
    settings.pooling = pooling;
    EngineRun run(path, settings);
    JobRequest request;
    request.kind = JobRequest::Kind::embedding;
    request.prompt = tokens;
    // Another job in flight changes nothing.
    const auto answers = run.run({greedy(tokens, 20), request});
    EXPECT_EQ(answers[1].result.error, "");
    EXPECT_EQ(answers[1].result.timings.n_prompt, tokens.size());
    return answers[1].result.embeddings;
}

struct PoolingCase {
    Pooling ours;
    StockPooling stocks;
};
constexpr PoolingCase poolings[] = {{Pooling::none, LLAMA_POOLING_TYPE_NONE},
                                    {Pooling::mean, LLAMA_POOLING_TYPE_MEAN},
                                    {Pooling::cls, LLAMA_POOLING_TYPE_CLS},
                                    {Pooling::last, LLAMA_POOLING_TYPE_LAST}};

void expect_stocks(const std::string& path, int n_vocab) {
    const auto tokens = random_tokens(5, n_tokens, n_vocab);
    for (const auto& [ours, stocks] : poolings) {
        EXPECT_EQ(our_embeddings(path, tokens, ours, 64), stock_embeddings(path, tokens, stocks))
            << pooling_name(ours);
    }
}

class Embeddings : public testing::TestWithParam<NamedModel> {};

TEST_P(Embeddings, AreStocksWithEveryPooling) {
    RandomModel model = GetParam().model;
    model.tokenizer = true;
    expect_stocks(make_model(model, GGML_TYPE_Q8_0).path(), model.n_vocab);
}

std::vector<NamedModel> first_forms() {
    std::vector<NamedModel> models{{"llama", RandomModel{}}};
    for (const NamedModel& model : architecture_models()) {
        if (model.name == model.model.architecture) models.push_back(model);
    }
    return models;
}
INSTANTIATE_TEST_SUITE_P(All, Embeddings, testing::ValuesIn(first_forms()),
                         [](const auto& one) { return one.param.name; });

TEST(ShippedModels, EmbedAsStockDoes) {
    for (const char* name : {"llama-16L", "gemma3-12L", "qwen35-12L"}) {
        SCOPED_TRACE(name);
        expect_stocks(std::string(PLEAT_MODELS_DIR) + "/pleat-demo-" + name + "-q4_0.gguf", 512);
    }
}

RandomModel with_pooling_type(uint32_t type) {
    RandomModel model{.tokenizer = true};
    model.metadata.push_back({"llama.pooling_type", type});
    return model;
}

TEST(Embeddings, OfLongTextsAreMadeOfAllChunks) {
    const std::string& path = make_model({.tokenizer = true}, GGML_TYPE_F32).path();
    const auto tokens = random_tokens(5, n_tokens, 512);
    EXPECT_EQ(our_embeddings(path, tokens, Pooling::none, 16).size(), n_tokens);
    const auto whole = our_embeddings(path, tokens, Pooling::mean, 64).front();
    const auto in_parts = our_embeddings(path, tokens, Pooling::mean, 16).front();
    for (size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(whole[i], in_parts[i], 1e-4F);
}

TEST(Embeddings, PoolAsTheFileSays) {
    const auto tokens = random_tokens(5, n_tokens, 512);
    for (const auto& [ours, stocks] : poolings) {
        const std::string& path =
            make_model(with_pooling_type(static_cast<uint32_t>(stocks)), GGML_TYPE_F16).path();
        EXPECT_EQ(our_embeddings(path, tokens, std::nullopt, 64),
                  stock_embeddings(path, tokens, stocks));
    }
}

TEST(Embeddings, RefuseRerankingByName) {
    const std::string& path = make_model(with_pooling_type(4), GGML_TYPE_F16).path();
    try {
        const EngineRun run(path, engine_settings(1));
        FAIL() << "taken";
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("llama.pooling_type is 4 (rank)"));
    }
}

}  // namespace
}  // namespace pleat::test
