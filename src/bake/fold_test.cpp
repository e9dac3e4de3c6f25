#include "bake/fold.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>
#include <vector>

namespace pleat {
namespace {

using testing::ElementsAre;

template <typename T>
FoldResult fold_vector(ggml_type type, float factor, std::vector<T>& values) {
    std::vector<T> out(values.size());
    const FoldResult result = fold(type, factor, std::as_bytes(std::span(values)),
                                   std::as_writable_bytes(std::span(out)));
    values = out;
    return result;
}

FoldResult fold_f16(float factor, std::vector<float>& values) {
    std::vector<ggml_fp16_t> stored;
    for (const float v : values) stored.push_back(ggml_fp32_to_fp16(v));
    const FoldResult result = fold_vector(GGML_TYPE_F16, factor, stored);
    for (size_t i = 0; i < values.size(); ++i) values[i] = ggml_fp16_to_fp32(stored[i]);
    return result;
}

FoldResult fold_bf16(float factor, std::vector<float>& values) {
    std::vector<ggml_bf16_t> stored;
    for (const float v : values) stored.push_back(ggml_fp32_to_bf16(v));
    const FoldResult result = fold_vector(GGML_TYPE_BF16, factor, stored);
    for (size_t i = 0; i < values.size(); ++i) values[i] = ggml_bf16_to_fp32(stored[i]);
    return result;
}

TEST(Fold, PowersOfTwoAreExactInEveryType) {
    std::vector<float> f32{1.0F, -3.5F, 0.1F, 0.0F};
    EXPECT_EQ(fold_vector(GGML_TYPE_F32, 0.5F, f32).rounded, 0U);
    EXPECT_THAT(f32, ElementsAre(0.5F, -1.75F, 0.05F, 0.0F));
    std::vector<float> f16{1.0F, -3.5F, 65504.0F};
    EXPECT_EQ(fold_f16(0.5F, f16).rounded, 0U);
    EXPECT_THAT(f16, ElementsAre(0.5F, -1.75F, 32752.0F));
    std::vector<float> bf16{1.0F, -3.5F, 0x1p100F};
    EXPECT_EQ(fold_bf16(4.0F, bf16).rounded, 0U);
    EXPECT_THAT(bf16, ElementsAre(4.0F, -14.0F, 0x1p102F));
}

TEST(Fold, WhatDoesNotFitIsRoundedAndCounted) {
    std::vector<float> f32{1.0F, 3.0F, 0.0F};
    EXPECT_EQ(fold_vector(GGML_TYPE_F32, 0.1F, f32).rounded, 1U);  // 1 * 0.1F is 0.1F itself
    EXPECT_THAT(f32, ElementsAre(0.1F, 0.1F * 3.0F, 0.0F));
    std::vector<float> f16{1.0F, 2.0F, 10.0F};
    EXPECT_EQ(fold_f16(0.75F, f16).rounded, 0U);
    f16 = {1.0F};
    EXPECT_EQ(fold_f16(0.7F, f16).rounded, 1U);
    EXPECT_THAT(f16, ElementsAre(0x1.668p-1F));
    // The smallest F16 above 0 is 2^-24; half of it rounds to the even neighbour, 0.
    f16 = {0x1p-24F, 0x1p-23F};
    EXPECT_EQ(fold_f16(0.5F, f16).rounded, 1U);
    EXPECT_THAT(f16, ElementsAre(0.0F, 0x1p-24F));
    std::vector<float> bf16{1.0F, 3.0F};
    EXPECT_EQ(fold_bf16(0.7F, bf16).rounded, 2U);
    EXPECT_THAT(bf16, ElementsAre(0x1.66p-1F, 0x1.0cp+1F));
}

TEST(Fold, TheFirstElementThatBecomesInfiniteIsTold) {
    const float infinity = std::numeric_limits<float>::infinity();
    std::vector<float> f16{1.0F, infinity, 40000.0F, 50000.0F};
    EXPECT_EQ(fold_f16(2.0F, f16).overflow, 2);
    std::vector<float> f32{1.0F, infinity, -0x1p127F};
    EXPECT_EQ(fold_vector(GGML_TYPE_F32, 2.0F, f32).overflow, 2);
    std::vector<float> bf16{0x1.fep127F};
    EXPECT_EQ(fold_bf16(1.001F, bf16).overflow, -1);  // rounds back to where it was
    bf16 = {0x1.fep127F};
    EXPECT_EQ(fold_bf16(1.01F, bf16).overflow, 0);
}

TEST(Fold, ValuesThatAreNoNumbersStayNone) {
    std::vector<float> f32{std::nanf(""), std::numeric_limits<float>::infinity()};
    const FoldResult result = fold_vector(GGML_TYPE_F32, 3.0F, f32);
    EXPECT_EQ(result.rounded, 0U);
    EXPECT_EQ(result.overflow, -1);
    EXPECT_TRUE(std::isnan(f32[0]));
    EXPECT_TRUE(std::isinf(f32[1]));
}

TEST(Fold, ZeroBytesAreZerosInEveryTypeThatWeightsHave) {
    size_t n_types = 0;
    for (int i = 0; i < GGML_TYPE_COUNT; ++i) {
        const auto type = static_cast<ggml_type>(i);
        const bool weight = ggml_is_quantized(type) || can_fold(type);
        // What kernels make on the fly is in no file and has no decoder.
        if (!weight || type == GGML_TYPE_Q8_1 || type == GGML_TYPE_Q8_K) continue;
        if (ggml_get_type_traits(type)->type_size == 0) continue;  // numbers of withdrawn types
        EXPECT_TRUE(zero_bytes_are_zeros(type)) << ggml_type_name(type);
        ++n_types;
    }
    EXPECT_GE(n_types, 27U);
    EXPECT_FALSE(zero_bytes_are_zeros(GGML_TYPE_I32));
}

TEST(Fold, OnlyFloatsTakeFactors) {
    for (int i = 0; i < GGML_TYPE_COUNT; ++i) {
        const auto type = static_cast<ggml_type>(i);
        EXPECT_EQ(can_fold(type),
                  type == GGML_TYPE_F32 || type == GGML_TYPE_F16 || type == GGML_TYPE_BF16);
    }
}

}  // namespace
}  // namespace pleat
