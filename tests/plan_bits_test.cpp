#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "gguf/file.h"
#include "gguf/writer.h"
#include "support/baked.h"
#include "support/pleat_run.h"
#include "support/random_model.h"
#include "support/random_tokens.h"
#include "support/side_by_side.h"
#include "support/stock.h"

// A plan in Pleat gives the logits, in every bit, that stock gives on the plan's baked file.
namespace pleat::test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

const StockSettings two_threads{.n_ctx = 512, .n_threads = 2, .n_threads_batch = 2};

/// Both sides on three texts in one context each: a batch, a prefill with steps, token by token;
/// between them the cache is cleared, so the later two also prove that nothing of the first is
/// left.
void expect_same_bits(Context& ours, StockContext& theirs, int n_vocab, size_t n_tokens) {
    const size_t prefills[] = {n_tokens, n_tokens / 3, 1};
    uint32_t seed = 21;
    for (const size_t prefill : prefills) {
        SCOPED_TRACE(fmt::format("prefill {} of {}", prefill, n_tokens));
        const auto tokens = random_tokens(seed++, n_tokens, n_vocab);
        EXPECT_THAT(pleat_logits(ours, tokens, prefill),
                    BitIdenticalTo(stock_logits(theirs, tokens, prefill)));
        ours.clear();
        theirs.clear();
    }
}

void expect_same_bits(const std::string& path, const std::string& spec,
                      const StockSettings& settings = two_threads, int n_vocab = 512,
                      const BakeOptions& options = {}, size_t n_tokens = 24) {
    SCOPED_TRACE(spec);
    BakeReport report;
    const TempFile baked = bake_spec(path, spec, options, &report);
    // Only a file that says the plan exactly can be held against it.
    EXPECT_THAT(report.warnings, Not(Contains(HasSubstr("rounded"))));
    const Stock stock(baked.path());
    StockContext theirs = stock.context(settings);
    const auto ours = pleat_context(path, spec, settings);
    expect_same_bits(*ours, theirs, n_vocab, n_tokens);
}

struct TypeCase {
    std::string name;
    ggml_type type = GGML_TYPE_F32;
    bool q4_k_m = false;
};

void PrintTo(const TypeCase& c, std::ostream* out) { *out << c.name; }

const TempFile& model_of(const TypeCase& c, const RandomModel& model) {
    return c.q4_k_m ? make_model(model, LLAMA_FTYPE_MOSTLY_Q4_K_M) : make_model(model, c.type);
}

class PlanOfType : public testing::TestWithParam<TypeCase> {};

TEST_P(PlanOfType, EqualsItsBakedFile) {
    const TempFile& file = model_of(GetParam(), {});
    for (const char* spec : {
             "",                                      // the file itself
             "1,3",                                   // a block twice
             "1,3x3",                                 // three times
             "0,2;1,3",                               // overlapping blocks
             "1,3;1,3",                               // the same one again
             "skip:1",                                //
             "skip:3+0,2",                            // ends early
             "layers:3..0",                           // descending
             "layers:0..2,1,2,2",                     // ends in a repeat
             "layers:2",                              // one pass
             "drop:1",                                //
             "drop:3",                                // attention of the last pass
             "drop-ffn:0,3",                          // FFN of the last pass
             "drop:0..3",                             // no cache at all
             "1,3+drop:2+drop-ffn:1",                 // in every pass of a repeat
             "layers:0..3,1..3[-attn]",               // only in the second pass
             "layers:0[-ffn],1,2[-attn,-ffn],3,1",    // both
             "layers:0..3,3[-attn,-ffn]",             // both, in the last pass
             "layers:0,1[scale=0],2[qk=0],3[-attn]",  // zeros are in every type
         }) {
        expect_same_bits(file.path(), spec);
    }
}

INSTANTIATE_TEST_SUITE_P(
    Types, PlanOfType,
    testing::Values(TypeCase{"f32", GGML_TYPE_F32}, TypeCase{"f16", GGML_TYPE_F16},
                    TypeCase{"bf16", GGML_TYPE_BF16}, TypeCase{"q8_0", GGML_TYPE_Q8_0},
                    TypeCase{"q4_0", GGML_TYPE_Q4_0}, TypeCase{"q6_K", GGML_TYPE_Q6_K},
                    TypeCase{"iq4_nl", GGML_TYPE_IQ4_NL},
                    TypeCase{"q4_K_M", GGML_TYPE_COUNT, true}),
    [](const auto& param) { return param.param.name; });

/// Types whose zeros a kernel might not take for zeros.
class ZerosOfType : public testing::TestWithParam<ggml_type> {};

TEST_P(ZerosOfType, DropAttentionAndFfn) {
    const TempFile& file =
        make_model({.n_layer = 2, .n_ff = 256, .n_vocab = 64, .tied = true}, GetParam());
    expect_same_bits(file.path(), "layers:0,1[-attn],0[-ffn],1[-attn,-ffn],1", two_threads, 64);
}

INSTANTIATE_TEST_SUITE_P(Types, ZerosOfType,
                         testing::Values(GGML_TYPE_Q4_1, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1,
                                         GGML_TYPE_Q2_K, GGML_TYPE_Q3_K, GGML_TYPE_Q4_K,
                                         GGML_TYPE_Q5_K, GGML_TYPE_IQ2_XXS, GGML_TYPE_IQ2_XS,
                                         GGML_TYPE_IQ2_S, GGML_TYPE_IQ3_XXS, GGML_TYPE_IQ3_S,
                                         GGML_TYPE_IQ1_S, GGML_TYPE_IQ1_M, GGML_TYPE_IQ4_XS,
                                         GGML_TYPE_TQ1_0, GGML_TYPE_TQ2_0, GGML_TYPE_MXFP4),
                         [](const auto& param) { return ggml_type_name(param.param); });

class FactorsOfType : public testing::TestWithParam<ggml_type> {};

TEST_P(FactorsOfType, EqualTheFactorsInTheWeights) {
    for (const bool biases : {false, true}) {
        SCOPED_TRACE(biases ? "with biases" : "without biases");
        // Weights that were multiplied before can be divided exactly, also those near F16's end.
        const TempFile file =
            bake_spec(make_model({.biases = biases}, GetParam()).path(), "layers:0..3[scale=4]");
        for (const char* spec : {"layers:0,1[scale=0.5],2,3", "layers:0,1[scale=2],2,1[scale=0],3",
                                 "layers:0..3,1..3[scale=0.25,-attn]", "layers:0..2,3[scale=4]",
                                 "layers:0,1[-ffn,scale=0.5],2,3"}) {
            expect_same_bits(file.path(), spec);
        }
    }
}

/// Kernels round the query to the type of the keys, so the factor must meet it before they do.
std::vector<StockSettings> settings_for_query_factors() {
    const StockSettings f16{.n_ctx = 512};
    StockSettings f16_off = f16;
    f16_off.flash_attn = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    StockSettings q8_0 = f16;
    q8_0.type_k = GGML_TYPE_Q8_0;
    q8_0.type_v = GGML_TYPE_Q8_0;
    return {f16, f16_off, q8_0};
}

TEST_P(FactorsOfType, OfTheQueryEqualTheFactorsInItsProjection) {
    for (const RandomModel& model :
         {RandomModel{.biases = true}, RandomModel{.biases = true, .fused_qkv = true},
          RandomModel{.scales = true}}) {
        SCOPED_TRACE(describe(model));
        const TempFile file = bake_spec(make_model(model, GetParam()).path(), "layers:0..3[qk=4]");
        for (const StockSettings& settings : settings_for_query_factors()) {
            SCOPED_TRACE(ggml_type_name(settings.type_k));
            for (const char* spec : {"layers:0,1[qk=0.5],2,3", "layers:0..3,1..2[qk=2],3",
                                     "layers:0..2,3[qk=0]", "layers:0,1[qk=0.25,scale=2],2,3"}) {
                expect_same_bits(file.path(), spec, settings);
            }
        }
    }
}

TEST(Plan, QueryFactorsEqualThoseInTheProjectionInBatchesThatAreComputedInTiles) {
    // From 64 rows on F16 keys are made F32, and so is the query left.
    const TempFile& file = make_model({});
    const char* const spec = "layers:0,1[qk=0.5],2[qk=2],3";
    const auto tokens = random_tokens(3, 192, 512);
    StockSettings settings = two_threads;
    settings.flash_attn = LLAMA_FLASH_ATTN_TYPE_ENABLED;
    settings.n_ubatch = 64;
    EXPECT_THAT(
        pleat_logits(file.path(), spec, tokens, 192, settings),
        BitIdenticalTo(stock_logits(bake_spec(file.path(), spec).path(), tokens, 192, settings)));
}

INSTANTIATE_TEST_SUITE_P(Types, FactorsOfType,
                         testing::Values(GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16),
                         [](const auto& param) { return ggml_type_name(param.param); });

struct ModelCase {
    std::string name;
    RandomModel model;
};

void PrintTo(const ModelCase& c, std::ostream* out) { *out << c.name; }

class PlanOfModel : public testing::TestWithParam<ModelCase> {};

TEST_P(PlanOfModel, EqualsItsBakedFile) {
    for (const ggml_type type : {GGML_TYPE_F32, GGML_TYPE_Q4_0}) {
        SCOPED_TRACE(ggml_type_name(type));
        const TempFile& file = make_model(GetParam().model, type);
        for (const char* spec : {"1,3+drop:2", "layers:0..3,2[-ffn],0[-attn],3[-attn,-ffn],1",
                                 "layers:3..0,1[-ffn]"}) {
            expect_same_bits(file.path(), spec, two_threads, GetParam().model.n_vocab);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
    Models, PlanOfModel,
    testing::Values(
        ModelCase{"biases", {.biases = true}}, ModelCase{"scales", {.scales = true}},
        ModelCase{"biases_and_scales", {.biases = true, .scales = true}},
        ModelCase{"fused_qkv", {.biases = true, .scales = true, .fused_qkv = true}},
        ModelCase{"experts", {.n_expert = 4, .n_expert_used = 2}},
        ModelCase{"experts_with_scales", {.n_expert = 4, .n_expert_used = 2, .scales = true}},
        ModelCase{"tied", {.tied = true}}, ModelCase{"rope_freqs", {.rope_freqs = true}},
        ModelCase{"longrope", {.rope_scaling = "longrope"}},
        ModelCase{"yarn", {.rope_scaling = "yarn"}},
        ModelCase{"odd_heads",
                  {.n_embd = 192, .n_head = 6, .n_head_kv = 2, .n_ff = 320, .n_vocab = 500}},
        ModelCase{"tokenizer", {.tokenizer = true}}, ModelCase{"alignment", {.alignment = 256}}),
    [](const auto& param) { return param.param.name; });

const char* const mixed_spec = "layers:0..3,2[-ffn],1..3[-attn],0,3[-attn],2";

TEST(Plan, EqualsItsBakedFileWithoutFlashAttention) {
    for (const ggml_type type : {GGML_TYPE_F32, GGML_TYPE_Q4_0}) {
        StockSettings settings = two_threads;
        settings.flash_attn = LLAMA_FLASH_ATTN_TYPE_DISABLED;
        expect_same_bits(make_model({}, type).path(), mixed_spec, settings);
        expect_same_bits(make_model({}, type).path(), "drop:0..3", settings);
    }
}

TEST(Plan, EqualsItsBakedFileWithEveryTypeOfKvCache) {
    const TempFile& file = make_model({.n_head = 4, .n_head_kv = 2}, GGML_TYPE_Q8_0);
    for (const ggml_type type : {GGML_TYPE_F32, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0,
                                 GGML_TYPE_IQ4_NL, GGML_TYPE_Q5_1}) {
        SCOPED_TRACE(ggml_type_name(type));
        StockSettings settings = two_threads;
        settings.type_k = type;
        settings.type_v = type;
        expect_same_bits(file.path(), mixed_spec, settings);
    }
}

TEST(Plan, EqualsItsBakedFileInSmallUbatchesAndBeyond512Cells) {
    const TempFile& file = make_model({}, LLAMA_FTYPE_MOSTLY_Q4_K_M);
    StockSettings settings = two_threads;
    settings.n_ubatch = 13;
    expect_same_bits(file.path(), mixed_spec, settings, 512, {}, 90);
    settings = two_threads;
    settings.n_ctx = 1024;
    const auto tokens = random_tokens(5, 620, 512);
    EXPECT_THAT(pleat_logits(file.path(), mixed_spec, tokens, 600, settings),
                BitIdenticalTo(stock_logits(bake_spec(file.path(), mixed_spec).path(), tokens, 600,
                                            settings)));
}

TEST(Plan, EqualsItsBakedFileForSeveralSequences) {
    const TempFile& file = make_model({}, GGML_TYPE_Q4_0);
    const TempFile baked = bake_spec(file.path(), mixed_spec);
    for (const bool unified : {false, true}) {
        SCOPED_TRACE(unified ? "unified" : "streams");
        StockSettings settings = two_threads;
        settings.n_ctx = 768;
        settings.n_seq_max = 3;
        settings.n_ubatch = 64;
        settings.kv_unified = unified;
        SideBySide both(file.path(), mixed_spec, baked.path(), settings);
        both.run({{0, 40}, {1, 30}});
        both.step({0, 1}, 3);
        both.cut(0, 20);
        both.run({{0, 9}, {1, 1}});
        both.copy(0, 2);
        both.run({{2, 5}});
        both.step({0, 1, 2});
    }
}

TEST(Plan, EqualsItsBakedFileWhenOnlySomeRowsAreWanted) {
    // The rows are chosen in the last pass, which may have any layer and lack any sub-layer.
    for (const char* spec : {"1,3", "layers:0..3,1,2", "layers:0..2,3[-attn]",
                             "layers:0..2,3[-ffn]", "layers:0..3,3[-attn,-ffn]", "layers:2"}) {
        for (const ggml_type type : {GGML_TYPE_F32, GGML_TYPE_Q4_K}) {
            SCOPED_TRACE(fmt::format("{} {}", spec, ggml_type_name(type)));
            const TempFile& file = make_model({}, type);
            StockSettings settings = two_threads;
            settings.n_ubatch = 32;
            SideBySide both(file.path(), spec, bake_spec(file.path(), spec).path(), settings);
            // None of rows 32 to 63, which are one ubatch.
            both.run({{0, 80}}, {.all = false, .rows = {3, 20, 21, 79}});
            both.step({0});
        }
    }
}

TEST(Plan, OfTheShippedModelEqualsItsBakedFile) {
    const std::string path = PLEAT_MODELS_DIR "/pleat-demo-llama-16L-q4_0.gguf";
    for (const char* spec : {"6,9", "9,11;4,6+drop:12", "layers:0..15,6..9[-attn]"}) {
        expect_same_bits(path, spec, two_threads, 1024, {}, 60);
    }
}

TEST(Plan, EqualsItsBakedFileOfAsManyPassesAsStockTakes) {
    const RandomModel model{.n_layer = 64, .n_embd = 64, .n_head = 2, .n_head_kv = 1, .n_ff = 96};
    const TempFile& file = make_model(model, GGML_TYPE_Q8_0);
    expect_same_bits(file.path(), "0,64x8+drop:3..60", two_threads, 512, {}, 8);
}

TEST(Plan, EqualsItsBakedFileWhenSixLayersBecomeFortyEightPasses) {
    const RandomModel model{.n_layer = 6, .n_embd = 64, .n_head = 2, .n_head_kv = 1, .n_ff = 96};
    const TempFile& file = make_model(model);
    expect_same_bits(file.path(), "0,6x8");
    expect_same_bits(file.path(), "layers:..,5..0,..,..,3,0");
}

/// A path of 1 to 9 passes with marks of all kinds; factors are powers of two.
std::string random_path(std::mt19937& random, uint32_t n_layer) {
    const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
    std::string path = "layers:";
    const uint32_t n = 1 + below(9);
    for (uint32_t i = 0; i < n; ++i) {
        if (i > 0) path += ',';
        path += std::to_string(below(n_layer));
        std::vector<std::string> marks;
        const bool attention = below(4) != 0;
        if (!attention) marks.emplace_back("-attn");
        if (below(5) == 0) marks.emplace_back("-ffn");
        const char* const factors[] = {"0.25", "0.5", "2", "0"};
        if (below(4) == 0) marks.push_back(fmt::format("scale={}", factors[below(4)]));
        if (attention && below(4) == 0) marks.push_back(fmt::format("qk={}", factors[below(4)]));
        if (!marks.empty()) path += fmt::format("[{}]", fmt::join(marks, ","));
    }
    return path;
}

TEST(PlanProperty, RandomPathsEqualTheirBakedFiles) {
    const RandomModel models[] = {
        {.n_layer = 2, .n_embd = 64, .n_head = 2, .n_head_kv = 1, .n_ff = 96, .n_vocab = 128},
        {.n_layer = 3,
         .n_embd = 64,
         .n_head = 4,
         .n_head_kv = 4,
         .n_ff = 64,
         .n_vocab = 100,
         .biases = true},
        {.n_layer = 3,
         .n_embd = 64,
         .n_head = 4,
         .n_head_kv = 2,
         .n_ff = 64,
         .n_vocab = 100,
         .n_expert = 3,
         .n_expert_used = 2,
         .tied = true,
         .fused_qkv = true},
    };
    for (const uint32_t seed : seeds(90)) {
        const RandomModel& model = models[seed % 3];
        std::mt19937 random(seed);
        const std::string spec = random_path(random, static_cast<uint32_t>(model.n_layer));
        SCOPED_TRACE(fmt::format("seed {}", seed));
        StockSettings settings = settings_for_query_factors()[seed % 2];
        settings.n_threads = 1;
        settings.n_threads_batch = 1;
        expect_same_bits(make_model(model).path(), spec, settings, model.n_vocab, {}, 12);
    }
}

/// Layers of two models of one width in turns: heads, K/V heads and FFN differ from layer to layer,
/// so the file says them in arrays.
TempFile make_mixed_model(ggml_type type) {
    const RandomModel even{.n_head = 8, .n_head_kv = 4, .head_dim = 32, .n_ff = 512};
    const RandomModel odd{.seed = 2, .n_head = 4, .n_head_kv = 2, .head_dim = 32, .n_ff = 256};
    const auto even_file = gguf::File::open(make_model(even, type).path());
    const auto odd_file = gguf::File::open(make_model(odd, type).path());
    std::vector<gguf::KeyValue> metadata = even_file.metadata();
    const auto turns = [](uint32_t a, uint32_t b) {
        return gguf::Array{.type = gguf::ValueType::u32,
                           .items = std::vector<uint32_t>{a, b, a, b}};
    };
    for (gguf::KeyValue& entry : metadata) {
        if (entry.key == "llama.attention.head_count") entry.value = turns(8, 4);
        if (entry.key == "llama.attention.head_count_kv") entry.value = turns(4, 2);
        if (entry.key == "llama.feed_forward_length") entry.value = turns(512, 256);
    }
    // The head size follows from the first layer: 256 / 8.
    std::erase_if(metadata, [](const gguf::KeyValue& entry) {
        return entry.key.ends_with("key_length") || entry.key.ends_with("value_length");
    });
    std::vector<gguf::TensorToWrite> tensors;
    for (const gguf::TensorInfo& info : even_file.tensors()) {
        const bool is_odd = info.name.starts_with("blk.1.") || info.name.starts_with("blk.3.");
        const gguf::File& file = is_odd ? odd_file : even_file;
        const gguf::TensorInfo& from = *file.find_tensor(info.name);
        tensors.push_back({.name = from.name,
                           .type = from.type,
                           .ne = {from.ne.begin(), from.ne.begin() + from.n_dims},
                           .write = [&](const auto& sink) { sink(file.data(from)); }});
    }
    TempFile out(".gguf");
    gguf::write(out.path(), metadata, tensors);
    return out;
}

TEST(Plan, TwoContextsOfOneModelInTurnsGiveWhatEachGivesAlone) {
    const TempFile& file = make_model({}, GGML_TYPE_Q4_0);
    const std::string specs[] = {"1,3", "layers:0,3[-attn],2,1,3"};
    const auto tokens = random_tokens(31, 24, 512);
    start_stock();
    const auto model = open_model(file.path());
    std::vector<std::unique_ptr<Context>> contexts;
    for (const std::string& spec : specs) {
        contexts.push_back(
            std::make_unique<Context>(model, LayerPlan::resolve(parse_spec(spec), model->shape()),
                                      pleat_settings(two_threads)));
    }
    Logits in_turns[2];
    for (size_t i = 0; i < tokens.size(); i += i == 0 ? 10 : 1) {
        for (size_t c = 0; c < 2; ++c) {
            const auto part = std::span(tokens).subspan(i, i == 0 ? 10 : 1);
            in_turns[c].append(
                pleat_decode(*contexts[c], stock_batch(part, static_cast<llama_pos>(i))));
        }
    }
    for (size_t c = 0; c < 2; ++c) {
        SCOPED_TRACE(specs[c]);
        EXPECT_THAT(in_turns[c],
                    BitIdenticalTo(pleat_logits(file.path(), specs[c], tokens, 10, two_threads)));
        EXPECT_THAT(in_turns[c],
                    BitIdenticalTo(stock_logits(bake_spec(file.path(), specs[c]).path(), tokens, 10,
                                                two_threads)));
    }
}

const BakeOptions as_deci{.as = BakeFormat::deci};

TEST(PlanAsDeci, EqualsThePlanInEveryType) {
    for (const ggml_type type :
         {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_Q6_K}) {
        SCOPED_TRACE(ggml_type_name(type));
        for (const char* spec : {
                 "",                                   // no drop at all
                 "drop:2",                             //
                 "drop:1..3",                          // the last pass too
                 "drop:0..3",                          // and the first, which keeps its heads
                 "layers:0..3,1..3[-attn]",            // in the second pass only
                 "layers:0,1[-attn,-ffn],2,3",         // nothing of a pass is left
                 "layers:0,1,2[-ffn],3[-attn]",        // an FFN alone
                 "layers:0[-attn,-ffn],1[-attn],2,3",  // at the first place
                 "layers:0,1[-attn],2,3[-attn,-ffn]",  // at the last place
                 "layers:0[-attn]",                    // both places at once
             }) {
            expect_same_bits(make_model({}, type).path(), spec, two_threads, 512, as_deci);
        }
    }
}

TEST(PlanAsDeci, EqualsThePlanOfModelsOfManyKinds) {
    for (const RandomModel& model :
         {RandomModel{.biases = true}, RandomModel{.biases = true, .fused_qkv = true},
          RandomModel{.tied = true, .rope_freqs = true}, RandomModel{.rope_scaling = "longrope"},
          RandomModel{.rope_scaling = "yarn"}, RandomModel{.tokenizer = true},
          RandomModel{.n_head = 4, .n_head_kv = 1, .head_dim = 128}}) {
        SCOPED_TRACE(describe(model));
        expect_same_bits(make_model(model).path(), "1,3+drop:2", two_threads, 512, as_deci);
    }
}

TEST(PlanAsDeci, EqualsThePlanOfLayersThatDifferInHeadsAndWidth) {
    for (const ggml_type type : {GGML_TYPE_F32, GGML_TYPE_Q4_0}) {
        const TempFile file = make_mixed_model(type);
        for (const char* spec :
             {"", "1,3", "layers:1,0,3,2,2", "layers:3..0,1", "skip:0+drop:2",
              "layers:1[-attn],0,1[-ffn],2", "layers:1,0[-attn],2,1[-attn,-ffn],3"}) {
            expect_same_bits(file.path(), spec, two_threads, 512, as_deci);
        }
    }
}

TEST(Plan, OfLayersThatStocksLlamaCannotTellApartIsRefused) {
    const TempFile file = make_mixed_model(GGML_TYPE_F32);
    try {
        bake_spec(file.path(), "layers:2,1");
        ADD_FAILURE() << "was baked";
    } catch (const Error& error) {
        EXPECT_STREQ(
            error.what(),
            "layer 1 has 4 heads, 2 K/V heads and an FFN of 256, layer 2 has 8, 4 and 512: "
            "stock's llama takes those of the first layer for all; --as deci keeps them");
    }
    // Layers that agree are a model like any other, and the array becomes one of equal numbers.
    expect_same_bits(file.path(), "layers:1,3,1");
    expect_same_bits(file.path(), "layers:2,0,0");
}

TEST(PlanAsDeci, EqualsThePlanUnderOtherSettings) {
    const TempFile& file = make_model({.n_head = 4, .n_head_kv = 2}, GGML_TYPE_Q4_0);
    for (const bool flash : {true, false}) {
        for (const ggml_type type : {GGML_TYPE_F16, GGML_TYPE_Q8_0}) {
            if (!flash && type != GGML_TYPE_F16) continue;  // V must be whole without it
            StockSettings settings = two_threads;
            settings.type_k = type;
            settings.type_v = type;
            settings.n_ubatch = 16;
            settings.flash_attn =
                flash ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
            SCOPED_TRACE(fmt::format("{} flash {}", ggml_type_name(type), flash));
            expect_same_bits(file.path(), "1,3+drop:2", settings, 512, as_deci);
        }
    }
}

}  // namespace
}  // namespace pleat::test
