#include "plan_file/plan_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "plan/test_shapes.h"

namespace pleat {
namespace {

Spec spec_of(const std::string& text) { return parse_plan_file(text, "plan.txt").spec; }

std::string error(const std::string& text) {
    return error_of([&] { parse_plan_file(text, "plan.txt"); });
}

std::string slices(const std::string& rest) {
    return "merge_method: passthrough\nslices:\n" + rest;
}

Fingerprint made_for(int64_t n_layer, int64_t n_embd, int64_t n_vocab) {
    return {.architecture = "llama", .n_layer = n_layer, .n_embd = n_embd, .n_vocab = n_vocab};
}

TEST(Mergekit, SlicesAreConcatenatedHalfOpenRanges) {
    const Spec spec = spec_of(slices(R"(
  - sources:
      - model: some/model
        layer_range: [0, 34]
  - sources: [{model: some/model, layer_range: [26, 64]}]
dtype: bfloat16
base_model: some/model
tokenizer_source: base
)"));
    EXPECT_EQ(spec, parse_spec("layers:0..33,26..63"));
    EXPECT_EQ(LayerPlan::resolve(spec, llama_shape()), resolve("26,34", llama_shape()));
}

TEST(Mergekit, MayBeWrittenAsJson) {
    EXPECT_EQ(spec_of(R"({"merge_method": "passthrough", "slices":
                          [{"sources": [{"model": "m", "layer_range": [3, 4]}]}]})"),
              parse_spec("layers:3"));
}

TEST(Mergekit, WhatAPlanCannotSayIsRefusedByName) {
    const std::string source = "  - sources: [{model: m, layer_range: [0, 4]}]\n";
    EXPECT_EQ(error("merge_method: slerp\nslices:\n" + source),
              "plan.txt: merge_method is slerp; only passthrough is a plan");
    EXPECT_EQ(error("slices:\n" + source),
              "plan.txt: merge_method is missing; only passthrough is a plan");
    EXPECT_EQ(error(slices(source) + "parameters: {scale: 1}\n"),
              "plan.txt: the key parameters cannot be expressed as a plan");
    EXPECT_EQ(error(slices(source + "  - sources: [{model: m, layer_range: [0, 4], parameters: "
                                    "{scale: [{filter: o_proj, value: 0}]}}]\n")),
              "plan.txt, slice 2: the key parameters cannot be expressed as a plan");
    EXPECT_EQ(error(slices(source + "  - sources: [{model: n, layer_range: [0, 4]}]\n")),
              "plan.txt, slice 2: the model n is another than m before; a plan has one model");
    EXPECT_EQ(
        error(slices("  - sources: [{model: m+lora, layer_range: [0, 4]}]\n")),
        "plan.txt, slice 1: the model m+lora has a LoRA, which cannot be expressed as a plan");
    EXPECT_EQ(error(slices("  - sources: [{model: m, layer_range: [0, 4]}, {model: m, layer_range: "
                           "[0, 4]}]\n")),
              "plan.txt, slice 1: sources is not a list of exactly one source");
}

TEST(Mergekit, BrokenSlicesAreRefused) {
    const auto with_range = [](const std::string& range) {
        return error(slices("  - sources: [{model: m" + range + "}]\n"));
    };
    EXPECT_EQ(with_range(""), "plan.txt, slice 1: layer_range is missing");
    EXPECT_EQ(with_range(", layer_range: 4"),
              "plan.txt, slice 1: layer_range is not a pair [begin, end]");
    EXPECT_EQ(with_range(", layer_range: [4, 4]"),
              "plan.txt, slice 1: layer_range [4, 4] is empty; it is half-open, so begin < end");
    for (const std::string bad : {"-1", "0x4", "4.0", "99999999999999999999", "x", "\"\\n\""}) {
        EXPECT_THAT(with_range(", layer_range: [" + bad + ", 9]"),
                    ::testing::AllOf(::testing::StartsWith("plan.txt, slice 1: layer_range holds "),
                                     ::testing::EndsWith(", which is not the number of a layer")));
    }
    EXPECT_EQ(error("merge_method: passthrough\nslices: []\n"),
              "plan.txt: slices is not a list of at least one slice");
    EXPECT_EQ(error("merge_method: passthrough\nslices: [1]\n"),
              "plan.txt, slice 1: not a mapping");
    EXPECT_EQ(error(slices("  - sources: [{layer_range: [0, 4]}]\n")),
              "plan.txt, slice 1: the source names no model");
}

TEST(Mergekit, ErrorsOfResolvingNameTheSlice) {
    const Spec spec = spec_of(slices("  - sources: [{model: m, layer_range: [0, 9]}]\n"));
    EXPECT_EQ(error_of([&] { LayerPlan::resolve(spec, llama_shape({.n_layer = 8})); }),
              "plan.txt, slice 1: layer 8 of 0..8 is not in the model; this model has 8 layers, so "
              "layers are 0 to 7");
}

TEST(BlockList, CountsTraversalsOfHalfOpenBlocks) {
    EXPECT_EQ(spec_of(R"([{"start": 26, "end": 34, "count": 2}, {"start":1,"end":2,"count":3}])"),
              parse_spec("26,34;1,2x3"));
}

TEST(BlockList, BrokenEntriesAreRefused) {
    EXPECT_EQ(error("[]"), "plan.txt: the list of blocks is empty");
    EXPECT_EQ(error("[3]"), "plan.txt, entry 1: not an object with start, end and count");
    EXPECT_EQ(error(R"([{"start": 1, "end": 2}])"),
              "plan.txt, entry 1: the field count is missing");
    EXPECT_EQ(error(R"([{"start": 1, "end": 2, "count": 2, "scale": 1}])"),
              "plan.txt, entry 1: the field scale is not known; fields are start, end, count");
    EXPECT_EQ(error(R"([{"start": 1, "end": 2, "count": 0}])"),
              "plan.txt, entry 1: count counts the traversals in all, so it is >= 1 (1 changes "
              "nothing)");
    for (const std::string bad : {"-1", "1.0", "\"1\"", "99999999999999999999", "null"}) {
        EXPECT_EQ(error(R"([{"start": )" + bad + R"(, "end": 2, "count": 2}])"),
                  "plan.txt, entry 1: the field start is not a whole number >= 0");
    }
}

TEST(BlockList, ErrorsOfResolvingNameTheEntry) {
    const Spec spec = spec_of(R"([{"start": 60, "end": 65, "count": 2}])");
    EXPECT_EQ(error_of([&] { LayerPlan::resolve(spec, llama_shape()); }),
              "plan.txt, entry 1: block 60,65 ends after the last layer; this model has 64 layers, "
              "so 0 <= i < j <= 64");
}

TEST(Profile, HoldsAPlanAndPerhapsTheModelItWasMadeFor) {
    const PlanFile bare = parse_plan_file(R"({"pleat_profile": 1, "plan": "2,4+drop:1"})", "p");
    EXPECT_EQ(bare.spec, parse_spec("2,4+drop:1"));
    EXPECT_EQ(bare.model, std::nullopt);
    const PlanFile full = parse_plan_file(
        R"({"pleat_profile": 1, "plan": "", "model": {"architecture": "llama", "n_layer": 64,
            "n_embd": 256, "n_vocab": 512}})",
        "p");
    EXPECT_TRUE(full.spec.identity());
    EXPECT_EQ(full.model, made_for(64, 256, 512));
}

TEST(Profile, UnknownSchemasAndFieldsAreRefusedByName) {
    EXPECT_EQ(error(R"({"pleat_profile": 2, "plan": "", "new": 1})"),
              "plan.txt: the profile has schema 2, this program reads 1 (field pleat_profile)");
    EXPECT_EQ(error(R"({"pleat_profile": "1", "plan": ""})"),
              "plan.txt: the field pleat_profile is not a whole number >= 0");
    EXPECT_EQ(error(R"({"pleat_profile": 1})"), "plan.txt: the field plan is missing");
    EXPECT_EQ(error(R"({"pleat_profile": 1, "plan": 3})"),
              "plan.txt: the field plan is not a text");
    EXPECT_EQ(
        error(R"({"pleat_profile": 1, "plan": "", "seed": 1})"),
        "plan.txt: the field seed is not known; fields are pleat_profile, plan, model, measures, "
        "data, n_plans_tried, curve, similarity, settings, provenance, source, notes, extra");
    EXPECT_EQ(error(R"({"pleat_profile": 1, "plan": "", "model": []})"),
              "plan.txt: the field model is not an object");
    EXPECT_EQ(error(R"({"pleat_profile": 1, "plan": "", "model": {"architecture": "llama"}})"),
              "plan.txt, model: the field n_layer is missing");
    EXPECT_EQ(error(R"({"pleat_profile": 1, "plan": "", "model": {"size": 1}})"),
              "plan.txt, model: the field size is not known; fields are architecture, n_layer, "
              "n_layer_nextn, n_embd, n_vocab, tokenizer_sha256, tensor_types, "
              "tensor_types_sha256, content_sha256, file_type, name");
    EXPECT_EQ(error(R"({"pleat_profile": 1, "plan": "", "measures": {}})"),
              "plan.txt: the field measures is not a list");
    EXPECT_EQ(error(R"({"pleat_profile": 1, "plan": "", "provenance": 1})"),
              "plan.txt: the field provenance is not an object");
    EXPECT_EQ(error(R"({"pleat_profile": 1, "plan": "", "n_plans_tried": -1})"),
              "plan.txt: the field n_plans_tried is not a whole number >= 0");
    EXPECT_EQ(error(R"({"pleat_profile": 1, "plan": "", "model": {"architecture": "llama",
                        "n_layer": 4, "content_sha256": "12AB"}})"),
              "plan.txt, model: the field content_sha256 is not 64 hex digits in lower case");
    EXPECT_EQ(error(R"({"pleat_profile": 1, "plan": "2,4;"})"),
              "plan.txt \"2,4;\": an empty block (character 5) is not allowed; put ; only between "
              "blocks");
}

TEST(Profile, WhatOthersAddIsTheirs) {
    EXPECT_EQ(spec_of(R"({"pleat_profile": 1, "plan": "2,4", "extra": {"a": [1]}, "x-seed": 7,
                          "model": {"architecture": "llama", "n_layer": 64, "x-owner": "me"}})"),
              parse_spec("2,4"));
}

TEST(Profile, PublishedPlansRunOnTheShapeTheyNameAndOnNoOther) {
    ModelShape shape = llama_shape();
    shape.architecture = "qwen35";
    shape.n_embd = 5120;
    size_t n_profiles = 0;
    for (const auto& entry :
         std::filesystem::directory_iterator(PLEAT_MODELS_DIR "/../data/profiles")) {
        SCOPED_TRACE(entry.path().string());
        const PlanFile file = read_plan_file(entry.path().string());
        ASSERT_TRUE(file.model);
        EXPECT_FALSE(file.model->has_hashes());
        EXPECT_THAT(check_model(*file.model, shape_fingerprint(shape), "p", ProfileCheck::strict),
                    ::testing::IsEmpty());
        EXPECT_GT(LayerPlan::resolve(file.spec, shape).size(), 64U);
        EXPECT_NE(
            error_of([&] { check_model(*file.model, shape_fingerprint(llama_shape()), "p"); }),
            "no error");
        ++n_profiles;
    }
    EXPECT_EQ(n_profiles, 4U);
}

TEST(PlanFile, OtherContentIsOneClearLine) {
    EXPECT_EQ(error(""), "plan.txt: the file is empty");
    EXPECT_EQ(error(" \n"), "plan.txt: the file is empty");
    EXPECT_EQ(error(std::string("GGUF\3\0\0\0", 8)), "plan.txt: not a text file, so not a plan");
    EXPECT_EQ(
        error("26,34"),
        "plan.txt: not a plan; expected a Pleat profile, a list of blocks or a mergekit file");
    EXPECT_EQ(error("{}"),
              "plan.txt: not a plan; a profile has the field pleat_profile, a mergekit file has "
              "slices");
    EXPECT_EQ(error("[\n {,\n]"), "plan.txt: not valid JSON at line 2, column 3");
    EXPECT_THAT(error("a: b: c\n"),
                ::testing::StartsWith("plan.txt: not valid YAML at line 1, column 5: "));
    EXPECT_EQ(error(std::string((size_t{16} << 20) + 1, ' ')),
              "plan.txt: 16777217 bytes are too many for a plan; at most 16777216 are read");
}

TEST(PlanFile, NestingIsBoundedBeforeParsing) {
    const std::string message = "plan.txt: nested more than 64 levels deep, which no plan is";
    EXPECT_EQ(error(std::string(1'000'000, '[')), message);
    EXPECT_EQ(error("a: " + std::string(1'000'000, '{')), message);
    std::string dashes;
    for (int i = 0; i < 100'000; ++i) dashes += "- ";
    EXPECT_EQ(error(dashes), message);
    std::string indented;
    for (size_t i = 0; i < 1'000; ++i) indented += std::string(i, ' ') + "a:\n";
    EXPECT_EQ(error(indented), message);
}

TEST(PlanFile, IsReadFromDisk) {
    const std::string path = ::testing::TempDir() + "pleat_plan_file.json";
    std::ofstream(path) << "\xef\xbb\xbf"
                        << R"([{"start": 1, "end": 2, "count": 2}])";
    EXPECT_EQ(read_plan_file(path).spec, parse_spec("1,2"));
    std::remove(path.c_str());
    EXPECT_EQ(error_of([&] { read_plan_file(path); }),
              path + ": cannot open: No such file or directory");
    EXPECT_EQ(error_of([] { read_plan_file("/"); }), "/: not a regular file");
}

TEST(PlanFile, DamagedFilesEndInAnErrorOrASpec) {
    const std::vector<std::string> valid = {
        slices("  - sources:\n      - model: m\n        layer_range: [0, 34]\ndtype: f16\n"),
        R"({"merge_method":"passthrough","slices":[{"sources":[{"model":"m","layer_range":[3,4]}]}]})",
        R"([{"start": 26, "end": 34, "count": 2}, {"start":1,"end":2,"count":3}])",
        R"({"pleat_profile": 1, "plan": "2,4", "model": {"architecture": "llama", "n_layer": 64,
            "n_embd": 256, "n_vocab": 512}})"};
    const std::string pieces = "[]{}:,-#&*!|>'\"%@`?\n \t0a\\~<";
    for (uint32_t seed = 0; seed < 20'000; ++seed) {
        std::mt19937 random(seed);
        std::string text = valid[random() % valid.size()];
        for (size_t n = 1 + random() % 4; n > 0; --n) {
            const size_t at = random() % text.size();
            switch (random() % 3) {
                case 0:
                    text[at] = pieces[random() % pieces.size()];
                    break;
                case 1:
                    text.insert(at, 1, pieces[random() % pieces.size()]);
                    break;
                default:
                    text.erase(at, 1 + random() % 3);
            }
        }
        SCOPED_TRACE(text);
        const std::string message = error(text);  // any other exception fails the test
        EXPECT_EQ(message.find('\n'), std::string::npos);
        EXPECT_LT(message.size(), 600U);
    }
}

}  // namespace
}  // namespace pleat
