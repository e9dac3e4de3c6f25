#include "bake/metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bake/tiny_llama_for_test.h"

namespace pleat {
namespace {

class BakedMetadata : public testing::Test {
  protected:
    std::vector<gguf::KeyValue> of(const TinyLlama& tiny, const std::string& spec,
                                   const Architecture& row = llama_architecture(),
                                   std::vector<PassForm> forms = {},
                                   const std::string& architecture = "llama") {
        const std::string path = dir_.file("in.gguf");
        tiny.save(path);
        const auto model = open_tiny(path, row);
        const LayerPlan plan = plan_of(*model, spec);
        forms.resize(plan.size());
        return baked_metadata(*model, plan, forms, architecture);
    }
    static gguf::Value value(const std::vector<gguf::KeyValue>& all, const std::string& key) {
        for (const gguf::KeyValue& entry : all) {
            if (entry.key == key) return entry.value;
        }
        return std::string("no key ") + key;
    }

    TempDir dir_;
};

template <typename T>
gguf::Value array(gguf::ValueType type, std::vector<T> items) {
    return gguf::Array{.type = type, .items = std::move(items)};
}

TEST_F(BakedMetadata, IsCopiedInOrderButForTheBlockCountAndThePlansText) {
    const TinyLlama tiny{
        .keys = {{"tokenizer.ggml.model", std::string("gpt2")},
                 {"tokenizer.ggml.tokens",
                  array<std::string>(gguf::ValueType::string, {"a", "b", "c", "d"})},
                 {"tokenizer.ggml.add_bos_token", true},
                 {"some.f64", 0.5},
                 {"some.flags", array<uint8_t>(gguf::ValueType::boolean, {1, 0, 1, 1})},
                 {"llama.unknown", array<int32_t>(gguf::ValueType::i32, {1, 2, 3, 4})}}};
    std::vector<gguf::KeyValue> expected = tiny.metadata();
    for (gguf::KeyValue& entry : expected) {
        if (entry.key == "llama.block_count") entry.value = 6U;
    }
    expected.push_back({"pleat.plan", std::string("0..2,1..3")});
    EXPECT_EQ(of(tiny, "1,3"), expected);
}

TEST_F(BakedMetadata, ArraysFollowThePathWithTheirTypes) {
    // What other architectures have besides numbers.
    Architecture row = llama_architecture();
    row.per_layer_keys.emplace_back("attention.sliding_window_pattern");
    const TinyLlama tiny{
        .keys = {
            {"llama.feed_forward_length", array<uint32_t>(gguf::ValueType::u32, {64, 64, 64, 64})},
            {"llama.attention.head_count", array<int32_t>(gguf::ValueType::i32, {2, 2, 2, 2})},
            {"llama.attention.sliding_window_pattern",
             array<uint8_t>(gguf::ValueType::boolean, {1, 0, 0, 1})}}};
    const auto all = of(tiny, "layers:3,1,0,0,2", row);
    EXPECT_EQ(value(all, "llama.feed_forward_length"),
              (array<uint32_t>(gguf::ValueType::u32, {64, 64, 64, 64, 64})));
    EXPECT_EQ(value(all, "llama.attention.head_count"),
              (array<int32_t>(gguf::ValueType::i32, {2, 2, 2, 2, 2})));
    EXPECT_EQ(value(all, "llama.attention.sliding_window_pattern"),
              (array<uint8_t>(gguf::ValueType::boolean, {1, 0, 1, 1, 0})));
    EXPECT_EQ(value(all, "llama.attention.head_count_kv"), gguf::Value(1U));
}

TEST_F(BakedMetadata, ArraysWithEntriesForDraftBlocksLoseThem) {
    const TinyLlama tiny{
        .n_block = 3,
        .keys = {{"llama.nextn_predict_layers", uint64_t{1}},
                 {"llama.attention.head_count", array<uint16_t>(gguf::ValueType::u16, {2, 2, 4})}}};
    const auto all = of(tiny, "0,1", llama_with_drafts());
    EXPECT_EQ(value(all, "llama.attention.head_count"),
              (array<uint16_t>(gguf::ValueType::u16, {2, 2, 2})));
    EXPECT_EQ(value(all, "llama.nextn_predict_layers"), gguf::Value(uint64_t{0}));
    EXPECT_EQ(value(all, "llama.block_count"), gguf::Value(3U));
}

TEST_F(BakedMetadata, ABlockCountThatItsTypeCannotHoldBecomesU32) {
    TinyLlama tiny{.n_block = 20, .keys = {{"llama.block_count", int8_t{20}}}};
    EXPECT_EQ(value(of(tiny, "0,20x2"), "llama.block_count"), gguf::Value(int8_t{40}));
    EXPECT_EQ(value(of(tiny, "0,20x8"), "llama.block_count"), gguf::Value(160U));
}

TEST_F(BakedMetadata, SplitKeysGoAndAnEarlierPlansTextIsReplaced) {
    const auto all = of({.keys = {{"split.no", uint16_t{0}},
                                  {"pleat.plan", std::string("0,0")},
                                  {"split.count", uint16_t{1}},
                                  {"split.tensors.count", int32_t{38}}}},
                        "layers:2[-attn],2");
    for (const char* key : {"split.no", "split.count", "split.tensors.count"}) {
        EXPECT_EQ(value(all, key), gguf::Value(std::string("no key ") + key));
    }
    EXPECT_EQ(value(all, "pleat.plan"), gguf::Value(std::string("2[-attn],2")));
    EXPECT_EQ(all.back().key, "pleat.plan");
}

TEST_F(BakedMetadata, DeciGetsZerosWhereAPassHasNoSubLayer) {
    const TinyLlama tiny{
        .keys = {{"llama.attention.head_count", array<int32_t>(gguf::ValueType::i32, {2, 2, 2, 2})},
                 {"llama.rope.freq_base", 5000.0F}}};
    const std::vector<PassForm> forms{
        {}, {.without_attention = true}, {.without_attention = true, .without_ffn = true}, {}};
    const auto all = of(tiny, "", llama_architecture(), forms, "deci");
    EXPECT_EQ(value(all, "general.architecture"), gguf::Value(std::string("deci")));
    EXPECT_EQ(value(all, "deci.attention.head_count"),
              (array<int32_t>(gguf::ValueType::i32, {2, 0, 0, 2})));
    EXPECT_EQ(value(all, "deci.attention.head_count_kv"),
              (array<uint32_t>(gguf::ValueType::u32, {1, 0, 0, 1})));
    EXPECT_EQ(value(all, "deci.feed_forward_length"),
              (array<uint32_t>(gguf::ValueType::u32, {64, 64, 0, 64})));
    EXPECT_EQ(value(all, "deci.rope.freq_base"), gguf::Value(5000.0F));
    EXPECT_EQ(value(all, "llama.rope.freq_base"),
              gguf::Value(std::string("no key llama.rope.freq_base")));
}

}  // namespace
}  // namespace pleat
