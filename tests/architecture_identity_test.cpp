#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "support/pleat_run.h"
#include "support/random_model.h"
#include "support/random_models.h"
#include "support/random_shape.h"
#include "support/side_by_side.h"
#include "support/stock.h"

// The identity plan gives stock's logits in every bit, in every architecture: what identity_test
// says of llama in breadth, said of each form of layer that the others add.
namespace pleat::test {
namespace {

const StockSettings one_thread{.n_ctx = 512};
const StockSettings two_threads{.n_ctx = 512, .n_threads = 2, .n_threads_batch = 2};

const RandomModel& model_named(const std::string& name) {
    return std::ranges::find(architecture_models(), name, &NamedModel::name)->model;
}

bool has_window(const RandomModel& model) {
    for (int layer = 0; layer < model.n_layer; ++layer) {
        if (is_window(model, layer)) return true;
    }
    return false;
}

/// Why no cache of blocks of 32 can hold this model's heads; nothing when one can.
std::optional<std::string> no_quantised_cache(const RandomModel& model) {
    // A quantised cache is turned by matrices of 64 when the first layer's heads allow it, so then
    // the others' must too.
    const int unit = head_size(model, 0) % 64 == 0 ? 64 : 32;
    for (int layer = 0; layer < model.n_layer; ++layer) {
        if (is_recurrent(model, layer) || head_size(model, layer) % unit == 0) continue;
        return fmt::format("layer {} has heads of {}, no multiple of {}", layer,
                           head_size(model, layer), unit);
    }
    return std::nullopt;
}

class ArchitectureIdentity : public testing::TestWithParam<NamedModel> {
  protected:
    static const RandomModel& model() { return GetParam().model; }
    static const std::string& file(ggml_type type) { return make_model(model(), type).path(); }
};

TEST_P(ArchitectureIdentity, EqualsStockInEveryTypeAndSmallUbatches) {
    StockSettings settings = one_thread;
    for (const ggml_type type : {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0}) {
        SCOPED_TRACE(ggml_type_name(type));
        settings.n_ubatch = 13;
        SideBySide both(file(type), settings);
        both.run({{0, 40}});
        both.step({0}, 5);
        both.run({{0, 11}});
    }
    SCOPED_TRACE("q4_K_M");  // rows that are no multiple of 256 get what stock puts in its place
    settings.n_ubatch = 64;
    SideBySide both(make_model(model(), LLAMA_FTYPE_MOSTLY_Q4_K_M).path(), settings);
    both.run({{0, 70}});
    both.step({0}, 5);
}

TEST_P(ArchitectureIdentity, EqualsStockWithoutFlashAttention) {
    StockSettings settings = two_threads;
    settings.flash_attn = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    settings.n_ubatch = 64;
    for (const ggml_type type : {GGML_TYPE_F32, GGML_TYPE_Q4_0}) {
        SCOPED_TRACE(ggml_type_name(type));
        SideBySide both(file(type), settings);
        both.run({{0, 70}});
        both.step({0}, 3);
    }
}

TEST_P(ArchitectureIdentity, EqualsStockWithAQuantisedCache) {
    if (const auto reason = no_quantised_cache(model())) GTEST_SKIP() << *reason;
    StockSettings settings = one_thread;
    settings.n_ubatch = 13;
    settings.type_k = GGML_TYPE_Q8_0;
    settings.type_v = GGML_TYPE_Q8_0;
    SideBySide both(file(GGML_TYPE_F16), settings);
    both.run({{0, 40}});
    both.step({0}, 3);
    // V that lies transposed has to be whole.
    settings.type_v = GGML_TYPE_F16;
    settings.flash_attn = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    SideBySide off(file(GGML_TYPE_F16), settings);
    off.run({{0, 40}});
    off.step({0}, 3);
}

TEST_P(ArchitectureIdentity, EqualsStockBeyond256Cells) {
    StockSettings settings = two_threads;
    settings.n_ubatch = 64;
    SideBySide both(file(GGML_TYPE_Q4_0), settings);
    both.run({{0, 250}});
    both.step({0}, 10);
}

TEST_P(ArchitectureIdentity, EqualsStockWhenOnlySomeRowsAreWanted) {
    StockSettings settings = one_thread;
    settings.n_ubatch = 32;
    for (const ggml_type type : {GGML_TYPE_F32, GGML_TYPE_Q4_0}) {
        SCOPED_TRACE(ggml_type_name(type));
        SideBySide both(file(type), settings);
        both.run({{0, 80}}, {.all = false, .rows = {3, 20, 21, 79}});  // none of rows 32 to 63
        both.run({{0, 5}}, {.all = false, .rows = {2}});
        both.step({0}, 2);
    }
}

/// Prompts of unequal length in one batch, steps of some sequences, copies, and new beginnings.
void run_sequences(SideBySide& both, bool recurrent) {
    both.run({{0, 80}, {1, 70}});
    both.step({0, 1}, 2);
    both.step({1});
    both.run({{0, 3}, {1, 2}});
    both.run({{0, 1}, {1, 1}, {0, 1}, {1, 1}});
    both.cut(1, recurrent ? 0 : 65);
    both.run({{0, 1}, {1, 9}});
    both.copy(0, 2);
    both.run({{2, 5}});
    both.step({0, 1, 2}, 2);
    both.step({2, 0}, 2);  // neither consecutive nor ascending
    both.run({{0, 20}, {2, 30}});
    both.run({{2, 3}, {1, 3}, {0, 1}});
    both.clear();
    both.run({{1, 20}, {0, 33}}, {.all = false, .rows = {1, 19, 20, 52}});
    both.step({0, 1});
}

TEST_P(ArchitectureIdentity, EqualsStockForSeveralSequencesInStreamsOfTheirOwn) {
    StockSettings settings = two_threads;
    settings.n_ctx = 768;
    settings.n_ubatch = 64;
    settings.n_seq_max = 3;
    SideBySide both(file(GGML_TYPE_Q8_0), settings);
    run_sequences(both, is_qwen35(model()));
}

TEST_P(ArchitectureIdentity, EqualsStockForSeveralSequencesInOneUnifiedCache) {
    StockSettings settings = two_threads;
    settings.n_ctx = 768;
    settings.n_ubatch = 64;
    settings.n_seq_max = 3;
    settings.kv_unified = true;
    for (const auto flash : {LLAMA_FLASH_ATTN_TYPE_ENABLED, LLAMA_FLASH_ATTN_TYPE_DISABLED}) {
        SCOPED_TRACE(flash == LLAMA_FLASH_ATTN_TYPE_ENABLED ? "flash attention" : "without");
        settings.flash_attn = flash;
        SideBySide both(file(GGML_TYPE_Q4_0), settings);
        run_sequences(both, is_qwen35(model()));
    }
}

INSTANTIATE_TEST_SUITE_P(All, ArchitectureIdentity, testing::ValuesIn(architecture_models()),
                         [](const auto& param) { return param.param.name; });

std::vector<NamedModel> models_with_windows() {
    std::vector<NamedModel> models;
    std::ranges::copy_if(architecture_models(), std::back_inserter(models), [](const auto& named) {
        return has_window(named.model) && named.model.n_layer <= 12;
    });
    return models;
}

class WindowIdentity : public ArchitectureIdentity {};

TEST_P(WindowIdentity, EqualsStockFarBeyondTheWindow) {
    // A window of 16 and ubatches of 64: 256 cells, which 700 tokens use nearly three times.
    StockSettings settings = two_threads;
    settings.n_ctx = 768;
    settings.n_ubatch = 64;
    for (const bool swa_full : {false, true}) {
        SCOPED_TRACE(swa_full ? "with all cells" : "with a window's cells");
        settings.swa_full = swa_full;
        SideBySide both(file(GGML_TYPE_Q4_0), settings);
        const int n = swa_full ? 330 : 700;
        both.run({{0, n}}, {.all = false, .rows = {0, 255, 256, 300, static_cast<size_t>(n) - 1}});
        both.step({0}, 4);
        both.run({{0, 40}});
    }
    settings.flash_attn = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    settings.swa_full = false;
    SideBySide off(file(GGML_TYPE_F32), settings);
    off.run({{0, 300}}, {.all = false, .rows = {255, 256, 299}});
    off.step({0}, 2);
}

TEST_P(WindowIdentity, EqualsStockForSequencesFarBeyondTheWindow) {
    StockSettings settings = two_threads;
    settings.n_ctx = 1536;
    settings.n_ubatch = 48;
    settings.n_seq_max = 3;
    for (const bool unified : {false, true}) {
        SCOPED_TRACE(unified ? "unified" : "streams");
        settings.kv_unified = unified;
        SideBySide both(file(GGML_TYPE_Q4_0), settings);
        both.run({{0, 260}, {2, 200}}, {.all = false, .rows = {10, 259, 260, 459}});
        both.step({2, 0}, 2);
        both.copy(0, 1);
        both.step({0, 1, 2}, 2);
        both.run({{1, 90}, {0, 20}});
        both.step({0, 1, 2}, 2);
    }
}

INSTANTIATE_TEST_SUITE_P(All, WindowIdentity, testing::ValuesIn(models_with_windows()),
                         [](const auto& param) { return param.param.name; });

TEST(KQuantIdentity, EqualsStockInEveryArchitecture) {
    // Rows of 256, so that the mix has K-quants, and heads that a quantised cache can hold.
    for (const char* name : {"qwen2", "qwen3", "qwen3moe", "gemma3", "gemma4_shared_kv",
                             "gemma4_merged_experts", "qwen35", "qwen35moe_merged"}) {
        RandomModel model = model_named(name);
        model.n_embd = 256;
        model.n_ff = 256;
        if (model.n_ff_exp != 0) model.n_ff_exp = 256;
        if (!model.n_ff_per_layer.empty()) std::ranges::fill(model.n_ff_per_layer, 512);
        SCOPED_TRACE(describe(model));
        StockSettings settings = two_threads;
        settings.n_ubatch = 100;
        SideBySide both(make_model(model, LLAMA_FTYPE_MOSTLY_Q4_K_M).path(), settings);
        both.run({{0, 130}});
        both.step({0}, 4);
    }
}

std::vector<std::string> gguf_files(const std::filesystem::path& folder) {
    std::vector<std::string> files;
    if (!std::filesystem::is_directory(folder)) return files;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        if (entry.path().extension() == ".gguf") files.push_back(entry.path().string());
    }
    std::ranges::sort(files);
    return files;
}

void expect_same_bits_of_trained(const std::string& path) {
    SCOPED_TRACE(path);
    StockSettings settings = two_threads;
    settings.n_ctx = 768;
    settings.n_ubatch = 100;
    SideBySide both(path, settings);
    both.run({{0, 330}}, {.all = false, .rows = {0, 99, 100, 300, 329}});
    both.step({0}, 6);
}

TEST(TrainedIdentity, EqualsStockOnTheShippedModels) {
    const auto files = gguf_files(PLEAT_MODELS_DIR);
    ASSERT_FALSE(files.empty());
    for (const std::string& path : files) expect_same_bits_of_trained(path);
}

TEST(TrainedIdentity, EqualsStockOnTheModelsThatAreHandedAround) {
    const char* shared = std::getenv("PLEAT_SHARED");
    const std::filesystem::path folder =
        std::filesystem::path(shared != nullptr ? shared : PLEAT_SHARED_DEFAULT) / "models";
    const auto files = gguf_files(folder);
    if (files.empty()) {
        GTEST_SKIP() << "no .gguf files in " << folder << "; set PLEAT_SHARED to where models/ is";
    }
    for (const std::string& path : files) expect_same_bits_of_trained(path);
}

}  // namespace
}  // namespace pleat::test
