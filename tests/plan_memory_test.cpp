#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <memory>
#include <regex>
#include <string>
#include <vector>

#include "arch/registry.h"
#include "base/error.h"
#include "plan/cost.h"
#include "support/pleat_run.h"
#include "support/random_model.h"
#include "support/random_models.h"
#include "support/random_shape.h"
#include "support/random_tokens.h"
#include "support/stock.h"

// What a plan costs in memory: what the report says, and nothing for weights that come again.
namespace pleat::test {
namespace {

LayerPlan plan_of(const Model& model, const std::string& spec) {
    return LayerPlan::resolve(parse_spec(spec), model.shape());
}

std::shared_ptr<Model> loaded(const std::string& path, const std::string& spec,
                              ModelOptions options = {}) {
    start_stock();
    auto model = open_model(path, options);
    model->load(plan_of(*model, spec));
    return model;
}

TEST(PlanMemory, ARepeatAddsNoWeights) {
    for (const ggml_type type : {GGML_TYPE_F32, GGML_TYPE_Q4_0}) {
        const TempFile& file = make_model({}, type);
        for (const bool use_mmap : {true, false}) {
            const ModelOptions options{.use_mmap = use_mmap};
            const auto identity = loaded(file.path(), "", options);
            for (const char* spec : {"1,3", "0,4x8", "layers:3..0,0..3[-attn],2"}) {
                SCOPED_TRACE(spec);
                const auto repeated = loaded(file.path(), spec, options);
                EXPECT_EQ(repeated->loaded_bytes(), identity->loaded_bytes());
                EXPECT_EQ(repeated->allocated_bytes(), identity->allocated_bytes());
            }
            // Also when the plans follow one another on one model.
            const uint64_t before = identity->loaded_bytes();
            identity->load(plan_of(*identity, "0,4x8"));
            EXPECT_EQ(identity->loaded_bytes(), before);
        }
    }
}

TEST(PlanMemory, ADroppedAttentionIsNotLoaded) {
    for (const bool fused : {false, true}) {
        const TempFile& file = make_model({.biases = true, .scales = true, .fused_qkv = fused});
        const auto model = loaded(file.path(), "drop:1");
        const Layer& without = model->layer(1);
        EXPECT_EQ(without.attn_norm, nullptr);
        for (const Linear* linear : {&without.attn_qkv, &without.attn_q, &without.attn_k,
                                     &without.attn_v, &without.attn_output}) {
            EXPECT_EQ(linear->weight, nullptr);
            EXPECT_EQ(linear->bias, nullptr);
            EXPECT_EQ(linear->scale, nullptr);
        }
        EXPECT_NE(without.ffn.down.weight, nullptr);
        EXPECT_NE(model->layer(2).attn_output.weight, nullptr);
        const uint64_t attention = model->shape().layers[1].attention.resident_bytes;
        EXPECT_EQ(model->loaded_bytes() + attention, loaded(file.path(), "")->loaded_bytes());
        // One pass that still has it needs it whole; then nothing is saved.
        EXPECT_EQ(loaded(file.path(), "layers:0..3,1[-attn]")->loaded_bytes(),
                  loaded(file.path(), "")->loaded_bytes());
    }
}

TEST(PlanMemory, ADroppedFfnIsNotLoaded) {
    const auto model = loaded(make_model({.biases = true}).path(), "drop-ffn:2");
    EXPECT_EQ(model->layer(2).ffn_norm, nullptr);
    EXPECT_EQ(model->layer(2).ffn.up.weight, nullptr);
    EXPECT_EQ(model->layer(2).ffn.down.bias, nullptr);
    EXPECT_NE(model->layer(2).attn_q.weight, nullptr);
}

TEST(PlanMemory, ASkippedLayerIsNotLoaded) {
    const TempFile& file = make_model({});
    const auto model = loaded(file.path(), "skip:1..2");
    for (const int32_t layer : {1, 2}) {
        for (const NamedTensor& tensor : model->layer_tensors(layer)) {
            EXPECT_EQ(*tensor.target, nullptr) << tensor.info->name;
        }
    }
    for (const NamedTensor& tensor : model->layer_tensors(3)) {
        EXPECT_NE(*tensor.target, nullptr) << tensor.info->name;
    }
}

TEST(PlanMemory, LoadedBytesAreWhatThePlansCostSays) {
    const TempFile& file = make_model({.tied = true, .biases = true});
    for (const char* spec : {"", "1,3", "drop:1", "drop-ffn:0,3", "skip:2", "drop:2+drop-ffn:2",
                             "layers:0,3[-attn],2[-ffn]"}) {
        SCOPED_TRACE(spec);
        const auto model = loaded(file.path(), spec);
        const PlanCost cost = plan_cost(plan_of(*model, spec), model->shape(), {});
        EXPECT_EQ(model->loaded_bytes(), cost.weight_resident_bytes);
    }
}

TEST(PlanMemory, AllocatedCachesAreWhatThePlansCostSays) {
    const TempFile& file = make_model({.n_head = 4, .n_head_kv = 2});
    for (const char* spec : {"", "1,3", "0,4x5", "skip:1", "drop:0,2", "drop:0..3",
                             "layers:0..3,1..3[-attn],2", "layers:1"}) {
        for (const char* type : {"f16", "f32", "q8_0", "q4_0", "q5_1"}) {
            for (const uint32_t n_seq : {1U, 3U}) {
                for (const bool unified : {false, true}) {
                    SCOPED_TRACE(fmt::format("{} {} {} {}", spec, type, n_seq, unified));
                    start_stock();
                    const auto model = open_model(file.path());
                    LayerPlan plan = plan_of(*model, spec);
                    ContextSettings settings;
                    settings.cache.n_ctx = 300;
                    settings.cache.n_seq = n_seq;
                    settings.cache.kv_unified = unified;
                    settings.cache.type_k = cache_type(type);
                    settings.cache.type_v = cache_type(std::string(type) == "f32" ? "f16" : type);
                    const PlanCost cost = plan_cost(plan, model->shape(), settings.cache);
                    const Context context(model, std::move(plan), settings);
                    EXPECT_EQ(context.cache_bytes(), cost.cache_bytes());
                }
            }
        }
    }
}

TEST(PlanMemory, ADroppedAttentionHasNoCache) {
    const TempFile& file = make_model({});
    const uint64_t whole = pleat_context(file.path())->cache_bytes();
    EXPECT_EQ(pleat_context(file.path(), "drop:1")->cache_bytes(), whole / 4 * 3);
    EXPECT_EQ(pleat_context(file.path(), "0,4+drop:1")->cache_bytes(), whole / 4 * 6);
    EXPECT_EQ(pleat_context(file.path(), "layers:0..3,0..3[-attn]")->cache_bytes(), whole);
    EXPECT_EQ(pleat_context(file.path(), "drop:0..3")->cache_bytes(), 0U);
}

class ArchitectureMemory : public testing::TestWithParam<NamedModel> {
  protected:
    static const RandomModel& model() { return GetParam().model; }
    static const std::string& path() { return make_model(model()).path(); }
    static std::vector<std::string> specs() {
        const int last = model().n_layer - 1;
        std::vector<std::string> specs{"", fmt::format("1,{}", last + 1), "drop-ffn:1"};
        // The last layer may lose its attention unless it is recurrent or all that a hybrid has.
        int n_attention = 0;
        for (int layer = 0; layer <= last; ++layer)
            n_attention += is_recurrent(model(), layer) ? 0 : 1;
        if (!is_recurrent(model(), last)) {
            specs.push_back(fmt::format("layers:0..{},{}[-attn]", last, last));
            if (!is_qwen35(model()) || n_attention > 1)
                specs.push_back(fmt::format("drop:{}", last));
        }
        return specs;
    }
    static bool takes_q8_0() {
        for (int layer = 0; layer < model().n_layer; ++layer) {
            if (head_size(model(), layer) % 64 != 0) return false;
        }
        return true;
    }
};

TEST_P(ArchitectureMemory, OfCachesIsWhatThePlansCostSays) {
    start_stock();
    const auto model_of_file = open_model(path());
    for (const std::string& spec : specs()) {
        for (const uint32_t variant : seeds(8)) {
            ContextSettings settings;
            settings.cache.n_ctx = 600;
            settings.cache.n_ubatch = 64;
            settings.cache.n_seq = (variant & 1U) != 0 ? 3 : 1;
            settings.cache.kv_unified = (variant & 2U) != 0;
            settings.cache.swa_full = (variant & 4U) != 0;
            const bool flash = variant % 3 != 0;
            settings.flash_attention = flash ? FlashAttention::on : FlashAttention::off;
            settings.cache.flash_attention = flash;
            settings.cache.type_k = cache_type(takes_q8_0() && variant % 4 == 1 ? "q8_0" : "f32");
            SCOPED_TRACE(fmt::format("{} variant {}", spec, variant));
            LayerPlan plan = plan_of(*model_of_file, spec);
            const PlanCost cost = plan_cost(plan, model_of_file->shape(), settings.cache);
            const Context context(model_of_file, std::move(plan), settings);
            EXPECT_EQ(context.cache_bytes(), cost.cache_bytes());
        }
    }
}

TEST_P(ArchitectureMemory, OfWeightsIsWhatThePlansCostSays) {
    for (const std::string& spec : specs()) {
        SCOPED_TRACE(spec);
        const auto model_of_file = loaded(path(), spec);
        const PlanCost cost = plan_cost(plan_of(*model_of_file, spec), model_of_file->shape(), {});
        EXPECT_EQ(model_of_file->loaded_bytes(), cost.weight_resident_bytes);
    }
}

/// The sum of the sizes, in MiB, that stock's log gives for buffers of this kind since the model
/// was loaded; each is rounded to two places.
struct LoggedSize {
    double mib = 0;
    int n_lines = 0;
};

LoggedSize logged_size(const std::string& kind) {
    LoggedSize size;
    const std::string log = stock_log();
    const std::regex line(kind + R"( buffer size = +([0-9.]+) MiB)");
    for (std::sregex_iterator i(log.begin(), log.end(), line); i != std::sregex_iterator(); ++i) {
        size.mib += std::stod((*i)[1].str());
        ++size.n_lines;
    }
    return size;
}

TEST_P(ArchitectureMemory, OfTheIdentityPlansCachesIsStocks) {
    for (const uint32_t n_seq : {1U, 3U}) {
        for (const bool flash : {true, false}) {
            StockSettings settings{.n_ctx = 1536 * n_seq, .n_ubatch = 64, .n_seq_max = n_seq};
            settings.flash_attn =
                flash ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
            const Stock stock(path());
            const StockContext theirs = stock.context(settings);
            const LoggedSize kv = logged_size("KV");
            const LoggedSize states = logged_size("RS");
            const auto ours = pleat_context(path(), "", settings);
            EXPECT_GT(kv.n_lines, 0);
            EXPECT_EQ(states.n_lines > 0, is_qwen35(model()));
            EXPECT_NEAR(static_cast<double>(ours->cache_bytes()) / (1U << 20U), kv.mib + states.mib,
                        0.0051 * (kv.n_lines + states.n_lines));
        }
    }
}

INSTANTIATE_TEST_SUITE_P(All, ArchitectureMemory, testing::ValuesIn(architecture_models()),
                         [](const auto& param) { return param.param.name; });

const RandomModel& model_named(const std::string& name) {
    return std::ranges::find(architecture_models(), name, &NamedModel::name)->model;
}

uint64_t cache_bytes(const std::string& name, const std::string& spec,
                     const StockSettings& settings) {
    return pleat_context(make_model(model_named(name)).path(), spec, settings)->cache_bytes();
}

TEST(PlanMemory, ADroppedFullLayerFreesAContextAndADroppedWindowLayerAWindow) {
    // Two K/V heads of 32 in F16: a token's K and V take 2 * 2 * 32 * 2 bytes.
    const uint64_t token = 256;
    // The cells of a window of 16 and a ubatch of 64, rounded up.
    const uint64_t window = 256 * token;
    const StockSettings settings{.n_ctx = 2048, .n_ubatch = 64};
    const uint64_t full = 2048 * token;
    const uint64_t identity = 2 * full + 10 * window;  // layers 5 and 11 of 12 are full
    EXPECT_EQ(cache_bytes("gemma3", "", settings), identity);
    EXPECT_EQ(cache_bytes("gemma3", "drop:5", settings), identity - full);
    EXPECT_EQ(cache_bytes("gemma3", "drop:4", settings), identity - window);
    EXPECT_EQ(cache_bytes("gemma3", "4,6", settings), identity + full + window);
    EXPECT_EQ(cache_bytes("gemma3", "layers:0..11,5[-attn]", settings), identity);
    StockSettings all = settings;
    all.swa_full = true;
    EXPECT_EQ(cache_bytes("gemma3", "drop:4", all), 11 * full);
    StockSettings three{.n_ctx = 3 * 2048, .n_ubatch = 64, .n_seq_max = 3};
    EXPECT_EQ(cache_bytes("gemma3", "drop:5", three), 3 * (identity - full));
    three.kv_unified = true;  // three windows and a ubatch share 256 cells
    EXPECT_EQ(cache_bytes("gemma3", "drop:5", three), 3 * full + 10 * window);
}

TEST(PlanMemory, ARepeatedRecurrentLayerAddsAStateOnly) {
    // Four heads of 32 with as many keys: 3 inputs of 3 * 128 channels, and 4 matrices of 32 x 32.
    const uint64_t state = (3 * 384 + 4 * 32 * 32) * 4;
    const uint64_t kv = 512 * (2 * 2 * 64 * 2);  // two heads of 64 in F16
    for (const uint32_t n_seq : {1U, 3U}) {
        const StockSettings settings{.n_ctx = 512 * n_seq, .n_seq_max = n_seq};
        EXPECT_EQ(cache_bytes("qwen35", "", settings), n_seq * (6 * state + 2 * kv));
        EXPECT_EQ(cache_bytes("qwen35", "0,1", settings), n_seq * (7 * state + 2 * kv));
        EXPECT_EQ(cache_bytes("qwen35", "0,3x3", settings), n_seq * (12 * state + 2 * kv));
        EXPECT_EQ(cache_bytes("qwen35", "3,4", settings), n_seq * (6 * state + 3 * kv));
        EXPECT_EQ(cache_bytes("qwen35", "drop:3", settings), n_seq * (6 * state + kv));
        EXPECT_EQ(cache_bytes("qwen35", "layers:3,7", settings), n_seq * 2 * kv);
    }
}

TEST(PlanMemory, ALayerThatReadsTheKvOfAnotherHasNoCacheToSave) {
    // Layers 0 and 1 own a window's K/V (two heads of 64), 2 a context's (two of 128).
    const StockSettings settings{.n_ctx = 512, .n_ubatch = 64};
    const uint64_t window = 256 * (2 * 2 * 64 * 2);
    const uint64_t full = 512 * (2 * 2 * 128 * 2);
    const uint64_t identity = 2 * window + full;
    for (const char* spec : {"", "drop:4", "drop:3..5", "3,6", "skip:3..5", "layers:0..5,5,4,3"}) {
        EXPECT_EQ(cache_bytes("gemma4_shared_kv", spec, settings), identity) << spec;
    }
    EXPECT_EQ(cache_bytes("gemma4_shared_kv", "1,3", settings), identity + window + full);
    EXPECT_EQ(cache_bytes("gemma4_shared_kv", "layers:0..5,1[-attn],2", settings), identity + full);
    // A V that lies transposed is as wide everywhere as in the widest layer.
    StockSettings off = settings;
    off.flash_attn = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    EXPECT_EQ(cache_bytes("gemma4_shared_kv", "", off), 2 * 256 * (2 * 64 + 2 * 128) * 2 + full);
}

/// Bytes of the file's tensors whose names fit.
uint64_t bytes_of_tensors(const gguf::File& file, const std::string& pattern) {
    uint64_t bytes = 0;
    for (const gguf::TensorInfo& tensor : file.tensors()) {
        if (std::regex_match(tensor.name, std::regex(pattern))) bytes += tensor.bytes;
    }
    return bytes;
}

TEST(PlanMemory, WhatNoPassUsesIsNeverLoaded) {
    struct Case {
        const char* model;
        const char* unused;
    };
    for (const auto& [name, unused] :
         {Case{"qwen35_array_mtp", R"(blk\.4\..*)"}, Case{"qwen35moe_merged", R"(blk\.4\..*)"},
          Case{"gemma4_unused_kv_scales", R"(blk\.[34]\.attn_[kv](_norm)?\..*)"}}) {
        SCOPED_TRACE(name);
        const auto model = loaded(make_model(model_named(name)).path(), "");
        const uint64_t never = bytes_of_tensors(model->file(), unused);
        EXPECT_GT(never, 0U);
        EXPECT_EQ(model->loaded_bytes() + never, bytes_of_tensors(model->file(), ".*"));
    }
    const auto model = loaded(make_model(model_named("gemma4_unused_kv_scales")).path(), "3,5");
    for (const int32_t layer : {3, 4}) {
        EXPECT_EQ(model->layer(layer).attn_k.weight, nullptr);
        EXPECT_EQ(model->layer(layer).attn_v.weight, nullptr);
        EXPECT_NE(model->layer(layer).attn_q.weight, nullptr);
    }
}

/// Resident bytes of this process.
uint64_t resident_bytes() {
    std::ifstream statm("/proc/self/statm");
    uint64_t total = 0;
    uint64_t resident = 0;
    statm >> total >> resident;
    return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

/// Resident bytes of a fresh child once it has run some tokens under the plan.
uint64_t resident_bytes_of(const std::string& path, const std::string& spec) {
    int ends[2];
    if (::pipe(ends) != 0) fail("no pipe");
    const pid_t child = ::fork();
    if (child == 0) {
        uint64_t bytes = 0;
        try {
            const auto context = pleat_context(path, spec, {.n_ctx = 256});
            pleat_logits(*context, random_tokens(1, 8, 512), 4);
            bytes = resident_bytes();
        } catch (const std::exception&) {
            bytes = 0;
        }
        const bool written = ::write(ends[1], &bytes, sizeof(bytes)) == sizeof(bytes);
        ::_exit(written ? 0 : 1);
    }
    ::close(ends[1]);
    uint64_t bytes = 0;
    if (::read(ends[0], &bytes, sizeof(bytes)) != sizeof(bytes)) bytes = 0;
    ::close(ends[0]);
    ::waitpid(child, nullptr, 0);
    return bytes;
}

TEST(PlanMemory, TheProcessGrowsByCachesAndNotByWeightsWhenMiddleLayersRepeat) {
    // 8 layers of 12.6 MB in F32; the copies of a baked file would be 75 MB.
    const RandomModel model{.n_layer = 8, .n_embd = 512, .n_ff = 1536};
    for (const ggml_type type : {GGML_TYPE_F32, GGML_TYPE_Q4_0}) {
        const TempFile& file = make_model(model, type);
        const uint64_t identity = resident_bytes_of(file.path(), "");
        const uint64_t repeated = resident_bytes_of(file.path(), "1,7");
        ASSERT_GT(identity, 0U);
        ASSERT_GT(repeated, 0U);
        const auto header = open_model(file.path());
        const uint64_t copies = 6 * (header->shape().layers[0].attention.resident_bytes +
                                     header->shape().layers[0].ffn.resident_bytes);
        const uint64_t growth = repeated > identity ? repeated - identity : 0;
        EXPECT_LT(growth, copies / 2) << "of " << identity << ", copies would be " << copies;
    }
}

}  // namespace
}  // namespace pleat::test
