#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>

#include "arch/registry.h"
#include "base/error.h"
#include "plan/cost.h"
#include "support/pleat_run.h"
#include "support/random_model.h"
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
