#include "bake/bake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "bake/output.h"
#include "bake/tiny_llama_for_test.h"
#include "plan/test_shapes.h"

namespace pleat {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// A model of a test, its plan's file, and both ways to look at them.
class Bake : public testing::Test {
  protected:
    const gguf::File& bake_tiny(const TinyLlama& tiny, const std::string& spec,
                                const Architecture& row = llama_architecture()) {
        tiny.save(in_);
        model_ = open_tiny(in_, row);
        report_ = bake(*model_, plan_of(*model_, spec), out_, {.force = true});
        baked_ = std::make_unique<gguf::File>(gguf::File::open(out_));
        return *baked_;
    }
    std::string error_of(const TinyLlama& tiny, const std::string& spec) {
        tiny.save(in_);
        const auto model = open_tiny(in_);
        return message_of([&] { bake(*model, plan_of(*model, spec), out_); });
    }
    const gguf::File& source() const { return model_->file(); }
    void expect_raw(const std::string& baked, const std::string& original) const {
        EXPECT_EQ(data_of(*baked_, baked), data_of(source(), original)) << baked;
        EXPECT_EQ(baked_->find_tensor(baked)->type, source().find_tensor(original)->type);
    }

    TempDir dir_;
    std::string in_ = dir_.file("in.gguf");
    std::string out_ = dir_.file("out.gguf");
    std::shared_ptr<Model> model_;
    std::unique_ptr<gguf::File> baked_;
    BakeReport report_;
};

std::vector<std::string> names_of(const gguf::File& file) {
    std::vector<std::string> names;
    for (const gguf::TensorInfo& info : file.tensors()) names.push_back(info.name);
    return names;
}

TEST_F(Bake, WritesOneBlockForEveryPassByteForByte) {
    const gguf::File& baked = bake_tiny({.output_type = GGML_TYPE_Q8_0, .biases = true}, "1,3");
    EXPECT_EQ(report_.n_pass, 6U);
    EXPECT_THAT(report_.warnings, IsEmpty());
    EXPECT_EQ(baked.tensors().size(), 2 + 6 * (source().tensors().size() - 2) / 4);
    const int layers[] = {0, 1, 2, 1, 2, 3};
    for (int pass = 0; pass < 6; ++pass) {
        for (const char* name :
             {"attn_norm.weight", "attn_q.weight", "attn_q.bias", "attn_k.weight", "attn_v.bias",
              "attn_output.weight", "attn_output.bias", "ffn_norm.weight", "ffn_gate.weight",
              "ffn_up.bias", "ffn_down.weight", "ffn_down.bias"}) {
            expect_raw(fmt::format("blk.{}.{}", pass, name),
                       fmt::format("blk.{}.{}", layers[pass], name));
        }
    }
    expect_raw("token_embd.weight", "token_embd.weight");
    expect_raw("output_norm.weight", "output_norm.weight");
    EXPECT_EQ(names_of(baked).front(), "token_embd.weight");
    EXPECT_EQ(names_of(baked).back(), "output_norm.weight");
}

TEST_F(Bake, TellsTheSizeOfTheFile) {
    bake_tiny({}, "1,3");
    EXPECT_EQ(report_.bytes, std::filesystem::file_size(out_));
    bake_tiny({.keys = {{"general.alignment", 4096U}}}, "skip:1");
    EXPECT_EQ(report_.bytes, std::filesystem::file_size(out_));
}

TEST_F(Bake, TheIdentityPlanGivesTheSameTensorsInTheSameOrder) {
    const gguf::File& baked = bake_tiny({.biases = true}, "");
    EXPECT_EQ(names_of(baked), names_of(source()));
    for (const std::string& name : names_of(baked)) expect_raw(name, name);
}

TEST_F(Bake, LeavesOutSkippedLayersAndDraftBlocks) {
    const gguf::File& baked =
        bake_tiny({.n_block = 5, .keys = {{"llama.nextn_predict_layers", 1U}}}, "skip:0,2",
                  llama_with_drafts());
    EXPECT_EQ(baked.u32("llama.block_count"), 2U);
    EXPECT_EQ(baked.u32("llama.nextn_predict_layers"), 0U);
    expect_raw("blk.0.attn_q.weight", "blk.1.attn_q.weight");
    expect_raw("blk.1.attn_q.weight", "blk.3.attn_q.weight");
    EXPECT_THAT(names_of(baked), Each(Not(HasSubstr("blk.2."))));
}

TEST_F(Bake, TakesTensorsAlongThatNobodyAskedFor) {
    const std::string name = "attn_q.input_scale";
    const gguf::File& baked = bake_tiny(
        {.more_tensors = {TinyLlama::tensor("blk.1." + name, GGML_TYPE_F32, {1})}}, "layers:1,0,1");
    expect_raw("blk.0." + name, "blk.1." + name);
    expect_raw("blk.2." + name, "blk.1." + name);
    EXPECT_EQ(baked.find_tensor("blk.1." + name), nullptr);
}

TEST_F(Bake, ADropZeroesWhatEndsTheSubLayerInItsPassOnly) {
    for (const ggml_type type : {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q4_0, GGML_TYPE_Q8_0}) {
        const gguf::File& baked =
            bake_tiny({.output_type = type, .biases = true}, "layers:0,1,1[-attn],1[-ffn],2,3");
        for (const char* name : {"attn_output.weight", "attn_output.bias"}) {
            expect_raw(fmt::format("blk.1.{}", name), fmt::format("blk.1.{}", name));
            EXPECT_THAT(data_of(baked, fmt::format("blk.2.{}", name)), Each('\0'));
            expect_raw(fmt::format("blk.3.{}", name), fmt::format("blk.1.{}", name));
        }
        for (const char* name : {"ffn_down.weight", "ffn_down.bias"}) {
            expect_raw(fmt::format("blk.2.{}", name), fmt::format("blk.1.{}", name));
            EXPECT_THAT(data_of(baked, fmt::format("blk.3.{}", name)), Each('\0'));
        }
        for (const char* name :
             {"attn_q.weight", "attn_v.bias", "ffn_up.weight", "ffn_gate.bias"}) {
            expect_raw(fmt::format("blk.2.{}", name), fmt::format("blk.1.{}", name));
            expect_raw(fmt::format("blk.3.{}", name), fmt::format("blk.1.{}", name));
        }
    }
}

TEST_F(Bake, ADroppedFfnOfExpertsLosesTheirDownProjections) {
    const gguf::File& baked = bake_tiny({.n_expert = 3}, "drop-ffn:1");
    EXPECT_THAT(floats_of(baked, "blk.1.ffn_down_exps.weight"), Each(0.0F));
    expect_raw("blk.1.ffn_up_exps.weight", "blk.1.ffn_up_exps.weight");
    expect_raw("blk.0.ffn_down_exps.weight", "blk.0.ffn_down_exps.weight");
}

std::vector<float> times(std::vector<float> values, float factor, size_t n) {
    for (size_t i = 0; i < n; ++i) values[i] *= factor;
    return values;
}

TEST_F(Bake, AScaleGoesIntoWeightsAndBiasesOfBothOutputProjections) {
    const gguf::File& baked = bake_tiny({.biases = true}, "layers:0,1[scale=0.5],1,2[scale=0]");
    for (const char* name :
         {"attn_output.weight", "attn_output.bias", "ffn_down.weight", "ffn_down.bias"}) {
        const auto original = floats_of(source(), fmt::format("blk.1.{}", name));
        EXPECT_EQ(floats_of(baked, fmt::format("blk.1.{}", name)),
                  times(original, 0.5F, original.size()));
        expect_raw(fmt::format("blk.2.{}", name), fmt::format("blk.1.{}", name));
        EXPECT_THAT(floats_of(baked, fmt::format("blk.3.{}", name)), Each(0.0F));
    }
    expect_raw("blk.1.ffn_up.bias", "blk.1.ffn_up.bias");
    expect_raw("blk.1.attn_q.weight", "blk.1.attn_q.weight");
}

TEST_F(Bake, AScaleLeavesADroppedSubLayerAtZero) {
    const gguf::File& baked = bake_tiny({}, "layers:0,1[-attn,scale=2],2");
    EXPECT_THAT(floats_of(baked, "blk.1.attn_output.weight"), Each(0.0F));
    const auto down = floats_of(source(), "blk.1.ffn_down.weight");
    EXPECT_EQ(floats_of(baked, "blk.1.ffn_down.weight"), times(down, 2.0F, down.size()));
}

TEST_F(Bake, AScaleGoesIntoTheDownProjectionsOfExperts) {
    const gguf::File& baked = bake_tiny({.n_expert = 3}, "layers:0,1[scale=4]");
    const auto down = floats_of(source(), "blk.1.ffn_down_exps.weight");
    EXPECT_EQ(floats_of(baked, "blk.1.ffn_down_exps.weight"), times(down, 4.0F, down.size()));
}

TEST_F(Bake, AQueryFactorGoesIntoTheQuerysProjection) {
    const gguf::File& baked = bake_tiny({.biases = true}, "layers:0,1[qk=0.5],1");
    for (const char* name : {"attn_q.weight", "attn_q.bias"}) {
        const auto original = floats_of(source(), fmt::format("blk.1.{}", name));
        EXPECT_EQ(floats_of(baked, fmt::format("blk.1.{}", name)),
                  times(original, 0.5F, original.size()));
        expect_raw(fmt::format("blk.2.{}", name), fmt::format("blk.1.{}", name));
    }
    expect_raw("blk.1.attn_k.weight", "blk.1.attn_k.weight");
    expect_raw("blk.1.attn_output.weight", "blk.1.attn_output.weight");
}

TEST_F(Bake, AQueryFactorGoesIntoTheQuerysRowsOfAFusedProjection) {
    const gguf::File& baked =
        bake_tiny({.biases = true, .fused_qkv = true}, "layers:0,1[qk=0.5],1");
    const size_t n_query = 2 * 16;  // heads times their size
    EXPECT_EQ(floats_of(baked, "blk.1.attn_qkv.weight"),
              times(floats_of(source(), "blk.1.attn_qkv.weight"), 0.5F, n_query * 32));
    EXPECT_EQ(floats_of(baked, "blk.1.attn_qkv.bias"),
              times(floats_of(source(), "blk.1.attn_qkv.bias"), 0.5F, n_query));
    // Zero is in every type, also in some rows of a quantised one.
    bake_tiny({.query_type = GGML_TYPE_Q8_0, .fused_qkv = true}, "layers:1[qk=0]");
    const std::string data = data_of(*baked_, "blk.0.attn_qkv.weight");
    const size_t query_bytes = n_query * ggml_row_size(GGML_TYPE_Q8_0, 32);
    EXPECT_THAT(data.substr(0, query_bytes), Each('\0'));
    EXPECT_EQ(data.substr(query_bytes),
              data_of(source(), "blk.1.attn_qkv.weight").substr(query_bytes));
}

TEST_F(Bake, AQueryFactorGoesIntoTheQuerysNormWhereThereIsOne) {
    // The llama row does not use such a norm; the file and a row of our own say that it is there.
    Architecture row = llama_architecture();
    row.layer_tensors = [](const Hparams& h, int32_t layer, TensorList& list, Layer& w) {
        llama_architecture().layer_tensors(h, layer, list, w);
        static ggml_tensor* norm = nullptr;
        list.vector(Part::attention, Use::mul, fmt::format("blk.{}.attn_q_norm.weight", layer),
                    norm, 16);
    };
    TinyLlama tiny{.n_block = 1, .query_type = GGML_TYPE_Q8_0};
    tiny.more_tensors.push_back(TinyLlama::tensor("blk.0.attn_q_norm.weight", GGML_TYPE_F32, {16}));
    tiny.save(in_);
    const auto model = open_tiny(in_, row);
    bake(*model, plan_of(*model, "layers:0[qk=0.5]"), out_);
    const auto baked = gguf::File::open(out_);
    EXPECT_EQ(floats_of(baked, "blk.0.attn_q_norm.weight"),
              times(floats_of(model->file(), "blk.0.attn_q_norm.weight"), 0.5F, 16));
    EXPECT_EQ(data_of(baked, "blk.0.attn_q.weight"), data_of(model->file(), "blk.0.attn_q.weight"));
}

TEST_F(Bake, RoundingIsAWarningThatCountsIt) {
    bake_tiny({.output_type = GGML_TYPE_F16}, "layers:0,1[scale=0.7],0");
    EXPECT_THAT(report_.warnings,
                ElementsAre("tensor blk.1.attn_output.weight: 1024 of 1024 values of f16 were "
                            "rounded by [scale=0.7] of pass 1 (layer 1)",
                            "tensor blk.1.ffn_down.weight: 2048 of 2048 values of f16 were "
                            "rounded by [scale=0.7] of pass 1 (layer 1)"));
}

TEST_F(Bake, AFactorThatAQuantisedWeightWouldHaveToTakeIsRefused) {
    EXPECT_EQ(
        error_of({.output_type = GGML_TYPE_Q8_0}, "layers:0..3,1..2[scale=0.5]"),
        in_ +
            ": tensor blk.1.attn_output.weight has type q8_0: [scale=0.5] of pass 4 (layer 1) "
            "cannot be baked; a factor other than 0 goes into f32, f16 and bf16 only, since "
            "quantised weights are never quantised again");
    EXPECT_EQ(
        error_of({.query_type = GGML_TYPE_Q4_0, .fused_qkv = true}, "layers:3[qk=2]"),
        in_ +
            ": tensor blk.3.attn_qkv.weight has type q4_0: [qk=2] of pass 0 (layer 3) cannot "
            "be baked; a factor other than 0 goes into f32, f16 and bf16 only, since quantised "
            "weights are never quantised again");
    EXPECT_FALSE(std::filesystem::exists(out_));
    // A sub-layer that is dropped needs no factor.
    EXPECT_EQ(error_of({.output_type = GGML_TYPE_Q8_0}, "layers:0,1[-attn,-ffn,scale=0.5]"),
              "no error");
}

TEST_F(Bake, AFactorThatMakesAWeightInfiniteIsRefusedAndLeavesNoFile) {
    // 16 * 4096 is above 65504; this tensor's elements are 6, 7, ...
    EXPECT_EQ(error_of({.output_type = GGML_TYPE_F16}, "layers:0[scale=4096]"),
              in_ +
                  ": tensor blk.0.attn_output.weight, element 10: [scale=4096] of pass 0 (layer 0) "
                  "makes it infinite in f16");
    EXPECT_FALSE(std::filesystem::exists(out_));
    const std::filesystem::directory_iterator all(dir_.path());
    EXPECT_EQ(std::distance(begin(all), end(all)), 1);  // the model alone
}

TEST_F(Bake, NeverOverwritesTheModelUnderAnyName) {
    TinyLlama{}.save(in_);
    const auto model = open_tiny(in_);
    const LayerPlan plan = plan_of(*model, "1,2");
    const std::string link = dir_.file("link.gguf");
    const std::string hard_link = dir_.file("hard.gguf");
    std::filesystem::create_symlink(in_, link);
    std::filesystem::create_hard_link(in_, hard_link);
    const std::string before = read_bytes(in_);
    for (const std::string& out : {in_, dir_.path() + "/./in.gguf", link, hard_link}) {
        EXPECT_EQ(message_of([&] { bake(*model, plan, out, {.force = true}); }),
                  out + ": is the model's own file " + in_ + "; name another one to write");
    }
    EXPECT_EQ(read_bytes(in_), before);
}

TEST_F(Bake, OverwritesAFileOnlyWithForce) {
    TinyLlama{}.save(in_);
    const auto model = open_tiny(in_);
    const LayerPlan plan = plan_of(*model, "1,2");
    dir_.file_with("out.gguf", "precious");
    EXPECT_EQ(message_of([&] { bake(*model, plan, out_); }),
              out_ + ": exists; --force overwrites it");
    EXPECT_EQ(read_bytes(out_), "precious");
    bake(*model, plan, out_, {.force = true});
    EXPECT_EQ(gguf::File::open(out_).u32("llama.block_count"), 5U);
    EXPECT_EQ(message_of([&] { bake(*model, plan, "/dev/null", {.force = true}); }),
              "/dev/null: is no regular file; name a file to write");
    EXPECT_EQ(message_of([&] { bake(*model, plan, dir_.path(), {.force = true}); }),
              dir_.path() + ": is no regular file; name a file to write");
    const std::string nowhere = dir_.file("none/out.gguf");
    EXPECT_EQ(message_of([&] { bake(*model, plan, nowhere); }),
              nowhere + ": cannot write to " + dir_.file("none") + ": No such file or directory");
}

TEST_F(Bake, ADiskTooSmallIsToldWithBothNumbers) {
    EXPECT_THAT(message_of([&] { check_free_space(out_, uint64_t{1} << 62U); }),
                testing::MatchesRegex(
                    ".*/out\\.gguf: needs 4611686018427387904 bytes \\(.*\\), but the disk has "
                    "[0-9]+ bytes free \\(.*\\)"));
    EXPECT_EQ(message_of([&] { check_free_space("out.gguf", 1); }), "no error");
}

TEST_F(Bake, ReadsASplitModelAndWritesOneFile) {
    const TinyLlama tiny{.biases = true};
    tiny.save(in_);
    const std::string first = dir_.file("split-00001-of-00002.gguf");
    const std::string second = dir_.file("split-00002-of-00002.gguf");
    const auto tensors = tiny.tensors();
    const auto middle = tensors.begin() + 10;
    const auto part_keys = [&](uint16_t no) {
        return std::vector<gguf::KeyValue>{{"split.no", no},
                                           {"split.count", uint16_t{2}},
                                           {"split.tensors.count", int32_t(tensors.size())}};
    };
    auto keys = tiny.metadata();
    for (const auto& entry : part_keys(0)) keys.push_back(entry);
    gguf::write(first, keys, {tensors.begin(), middle});
    gguf::write(second, part_keys(1), {middle, tensors.end()});

    const auto whole = open_tiny(in_);
    const auto split = open_tiny(first);
    bake(*whole, plan_of(*whole, "1,3"), out_);
    const std::string out2 = dir_.file("out2.gguf");
    bake(*split, plan_of(*split, "1,3"), out2);
    EXPECT_EQ(read_bytes(out2), read_bytes(out_));
    EXPECT_EQ(message_of([&] { bake(*split, plan_of(*split, ""), second, {.force = true}); }),
              second + ": is the model's own file " + second + "; name another one to write");
}

TEST_F(Bake, PlansThatStockCannotRunAreRefused) {
    const ModelShape deep = llama_shape({.n_layer = 65});
    const auto plan_on = [&](const std::string& spec) {
        return LayerPlan::resolve(parse_spec(spec), deep);
    };
    EXPECT_EQ(message_of([&] { check_stock_takes(plan_on("0,64x8;0,1")); }),
              "the plan has 514 passes; stock runs models of at most 512 layers");
    EXPECT_EQ(message_of([&] { check_stock_takes(plan_on("0,64x8+skip:64")); }), "no error");
}

}  // namespace
}  // namespace pleat
