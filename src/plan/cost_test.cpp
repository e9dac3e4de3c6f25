#include "plan/cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/test_shapes.h"

namespace pleat {
namespace {

PlanCost cost(const std::string& spec, const ModelShape& shape,
              const CacheSettings& settings = {}) {
    return plan_cost(resolve(spec, shape), shape, settings);
}

TEST(CacheTypes, AreTheNineThatStockAllows) {
    std::vector<std::string_view> names;
    for (const CacheType& type : cache_types()) names.push_back(type.name);
    EXPECT_THAT(names, ::testing::ElementsAre("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1",
                                              "iq4_nl", "q5_0", "q5_1"));
    EXPECT_EQ(cache_type("q8_0").block_bytes, 34U);
    EXPECT_TRUE(cache_type("q8_0").quantized());
    EXPECT_FALSE(cache_type("bf16").quantized());
    EXPECT_EQ(error_of([] { cache_type("q2_k"); }),
              "cache type q2_k is not known; cache types are f32, f16, bf16, q8_0, q4_0, q4_1, "
              "iq4_nl, q5_0, q5_1");
}

TEST(CacheSettings, RoundCellsUpPerSequence) {
    const auto cells = [](uint32_t n_ctx, uint32_t n_seq, bool unified) {
        const CacheSettings settings{.n_ctx = n_ctx, .n_seq = n_seq, .kv_unified = unified};
        return std::make_pair(settings.n_cells(), settings.n_stream());
    };
    EXPECT_EQ(cells(4096, 1, false), std::make_pair(4096U, 1U));
    EXPECT_EQ(cells(4097, 3, false), std::make_pair(4352U, 3U));
    EXPECT_EQ(cells(4097, 3, true), std::make_pair(13056U, 1U));
    EXPECT_EQ(error_of([&] { cells(4294967295, 1, false); }),
              "a cache for 1 sequences of 4294967295 tokens has 4294967296 cells; at most "
              "4294967295 are possible");
}

TEST(CacheSettings, AWindowHoldsItselfAndOneUbatch) {
    const auto cells = [](const CacheSettings& settings) { return settings.n_cells_window(512); };
    EXPECT_EQ(cells({.n_ctx = 4096}), 1024U);
    EXPECT_EQ(cells({.n_ctx = 4096, .n_ubatch = 100}), 768U);
    EXPECT_EQ(cells({.n_ctx = 600}), 768U);
    EXPECT_EQ(cells({.n_ctx = 4096, .n_seq = 3}), 1024U);
    EXPECT_EQ(cells({.n_ctx = 4096, .n_seq = 3, .kv_unified = true}), 2048U);
    EXPECT_EQ(cells({.n_ctx = 4096, .swa_full = true}), 4096U);
}

TEST(WeightCosts, RepeatsAreReadAgainButNotResidentAgain) {
    const ModelShape shape = llama_shape({.n_layer = 8});
    const PlanCost identity = cost("", shape);
    EXPECT_EQ(identity.n_pass, 8);
    EXPECT_EQ(identity.weight_resident_bytes, 8U * 31'007 + 500'000);
    EXPECT_EQ(identity.weight_read_bytes, 8U * 11'007 + 500'050);
    EXPECT_EQ(identity.flops, 8U * 22'000 + 1'000'000);
    const PlanCost repeat = cost("2,6x3", shape);
    EXPECT_EQ(repeat.n_pass, 16);
    EXPECT_EQ(repeat.weight_resident_bytes, identity.weight_resident_bytes);
    EXPECT_EQ(repeat.weight_read_bytes, 16U * 11'007 + 500'050);
    EXPECT_EQ(repeat.flops, 16U * 22'000 + 1'000'000);
    EXPECT_DOUBLE_EQ(predicted_decode_ratio(repeat, identity), 676'162.0 / 588'106.0);
    EXPECT_EQ(predicted_decode_ratio(repeat, PlanCost{}), 1.0);
}

TEST(WeightCosts, WhatNoPassUsesIsNotResident) {
    const ModelShape shape = llama_shape({.n_layer = 8});
    const uint64_t whole = cost("", shape).weight_resident_bytes;
    EXPECT_EQ(cost("skip:1,2", shape).weight_resident_bytes, whole - 2 * 31'007);
    EXPECT_EQ(cost("drop:1,2", shape).weight_resident_bytes, whole - 2 * 1'000);
    EXPECT_EQ(cost("drop-ffn:1", shape).weight_resident_bytes, whole - 30'000);
    // One pass keeps the attention that another has lost.
    EXPECT_EQ(cost("layers:..,1[-attn,-ffn]", shape).weight_resident_bytes, whole);
    EXPECT_EQ(cost("layers:0,1[-attn],1[-ffn],2..", shape).weight_resident_bytes, whole);
}

TEST(CacheCosts, EveryOwningPassHasItsOwnCells) {
    const ModelShape shape = llama_shape({.n_layer = 8, .n_head_kv = 2, .head_dim = 64});
    const CacheSettings settings{.n_ctx = 1000, .n_seq = 2};
    const uint64_t token = 2 * 2 * 64 * 2;  // K and V, heads, head size, bytes of f16
    EXPECT_EQ(cost("", shape, settings).kv_bytes_per_token(), 8 * token);
    EXPECT_EQ(cost("", shape, settings).kv_bytes_full, 8 * token * 1024 * 2);
    EXPECT_EQ(cost("2,4", shape, settings).kv_bytes_full, 10 * token * 1024 * 2);
    EXPECT_EQ(cost("2,4+drop:3", shape, settings).kv_bytes_full, 8 * token * 1024 * 2);
    EXPECT_EQ(cost("drop-ffn:3", shape, settings).kv_bytes_full, 8 * token * 1024 * 2);
    EXPECT_EQ(cost("2,4", shape, settings).cache_bytes(), 10 * token * 1024 * 2);
}

TEST(CacheCosts, FollowTheCacheTypes) {
    const ModelShape shape = llama_shape({.n_layer = 1, .n_head_kv = 3, .head_dim = 64});
    CacheSettings settings{.n_ctx = 256};
    settings.type_k = cache_type("q8_0");
    settings.type_v = cache_type("q4_0");
    EXPECT_EQ(cost("", shape, settings).kv_bytes_per_token(), 3U * 2 * 34 + 3U * 2 * 18);
}

TEST(CacheCosts, ABlockDividesTheHeadSize) {
    const ModelShape shape = llama_shape({.n_layer = 1, .n_head_kv = 2, .head_dim = 48});
    CacheSettings settings;
    settings.type_v = cache_type("q5_1");
    EXPECT_EQ(
        error_of([&] { cost("", shape, settings); }),
        "V cache type q5_1 has blocks of 32 values, which do not divide the head size 48; f16 "
        "and f32 always do");
    settings.type_k = cache_type("q8_0");
    EXPECT_EQ(
        error_of([&] { slot_bytes(Slot{}, shape, settings); }),
        "K cache type q8_0 has blocks of 32 values, which do not divide the head size 48; f16 "
        "and f32 always do");
}

TEST(CacheCosts, AreRefusedWhenTheyOverflow) {
    const ModelShape shape =
        llama_shape({.n_layer = 1, .n_head_kv = 1U << 31, .head_dim = 1U << 30});
    EXPECT_EQ(error_of([&] { cost("", shape); }),
              "the cache of one pass takes more than 2^64 bytes");
}

TEST(CacheCosts, WindowLayersHoldAWindow) {
    const ModelShape shape = window_shape();  // 10 of 12 layers have a window of 512
    const uint64_t token = 2 * 2 * 64 * 2;
    const CacheSettings settings{.n_ctx = 4096};
    const PlanCost plan = cost("", shape, settings);
    EXPECT_EQ(plan.kv_bytes_full, 2 * token * 4096);
    EXPECT_EQ(plan.kv_bytes_window, 10 * token * 1024);
    EXPECT_EQ(plan.kv_bytes_per_token_full, 2 * token);
    EXPECT_EQ(plan.kv_bytes_per_token_window, 10 * token);
    EXPECT_EQ(cost("5,7", shape, settings).kv_bytes_window, 11 * token * 1024);
}

// Qwen3.5-27B: 64 layers, of which 16 have attention and 48 are recurrent.
TEST(CacheCosts, AHybridGrowsByRoleAndNotByLayers) {
    const ModelShape shape = hybrid_shape({.n_layer = 64});
    const PlanCost identity = cost("", shape);
    EXPECT_EQ(identity.state_bytes, 48U * 4'096);
    const PlanCost one = cost("33,34", shape);
    EXPECT_EQ(one.kv_bytes_full, identity.kv_bytes_full);
    EXPECT_EQ(one.state_bytes, 49U * 4'096);
    const PlanCost block = cost("26,34", shape);
    EXPECT_EQ(block.kv_bytes_full * 8, identity.kv_bytes_full * 9);
    EXPECT_EQ(cost("26,34", shape, {.n_seq = 3}).state_bytes, 3 * block.state_bytes);
    EXPECT_EQ(cost("26,34", shape, {.n_seq = 3, .kv_unified = true}).state_bytes,
              3 * block.state_bytes);
}

TEST(CacheCosts, AConsumerOfSharedKvAddsNothing) {
    const ModelShape shape = shared_shape();  // 0 and 2 have windows; 4 to 7 read 2 and 3
    const uint64_t token = 2 * 2 * 64 * 2;
    const CacheSettings settings{.n_ctx = 4096};
    EXPECT_EQ(cost("", shape, settings).kv_bytes_full, 2 * token * 4096);
    EXPECT_EQ(cost("", shape, settings).kv_bytes_window, 2 * token * 1024);
    EXPECT_EQ(cost("4,8", shape, settings).cache_bytes(), cost("", shape, settings).cache_bytes());
    EXPECT_EQ(cost("2,3", shape, settings).kv_bytes_window, 3 * token * 1024);
}

}  // namespace
}  // namespace pleat
