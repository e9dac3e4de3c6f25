#include "bake/fold.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <vector>

namespace pleat {
namespace {

struct Float32 {
    using Stored = float;
    static float decode(float value) { return value; }
    static float encode(float value) { return value; }
};

struct Float16 {
    using Stored = ggml_fp16_t;
    static float decode(ggml_fp16_t value) { return ggml_fp16_to_fp32(value); }
    static ggml_fp16_t encode(float value) { return ggml_fp32_to_fp16(value); }
};

struct BFloat16 {
    using Stored = ggml_bf16_t;
    static float decode(ggml_bf16_t value) { return ggml_bf16_to_fp32(value); }
    static ggml_bf16_t encode(float value) { return ggml_fp32_to_bf16(value); }
};

template <typename Format>
FoldResult fold_as(float factor, std::span<const std::byte> source, std::span<std::byte> target) {
    FoldResult result;
    const size_t size = sizeof(typename Format::Stored);
    for (size_t at = 0; at < source.size(); at += size) {
        typename Format::Stored stored;
        std::memcpy(&stored, &source[at], size);
        const float value = Format::decode(stored);
        // Two floats' product has at most 48 bits, so double holds it exactly.
        const double product = double{value} * double{factor};
        stored = Format::encode(static_cast<float>(product));
        std::memcpy(&target[at], &stored, size);
        const float back = Format::decode(stored);
        if (std::isinf(back) && !std::isinf(value) && result.overflow < 0) {
            result.overflow = static_cast<int64_t>(at / size);
        }
        if (!std::isnan(product) && double{back} != product) ++result.rounded;
    }
    return result;
}

}  // namespace

bool zero_bytes_are_zeros(ggml_type type) {
    if (type == GGML_TYPE_F32) return true;
    const ggml_type_traits* const traits = ggml_get_type_traits(type);
    if (traits->to_float == nullptr) return false;
    const std::vector<std::byte> block(traits->type_size);
    std::vector<float> values(static_cast<size_t>(traits->blck_size), 1.0F);
    traits->to_float(block.data(), values.data(), traits->blck_size);
    return std::ranges::all_of(values, [](float value) { return value == 0.0F; });
}

bool can_fold(ggml_type type) {
    return type == GGML_TYPE_F32 || type == GGML_TYPE_F16 || type == GGML_TYPE_BF16;
}

FoldResult fold(ggml_type type, float factor, std::span<const std::byte> source,
                std::span<std::byte> target) {
    assert(can_fold(type) && source.size() == target.size());
    if (type == GGML_TYPE_F16) return fold_as<Float16>(factor, source, target);
    if (type == GGML_TYPE_BF16) return fold_as<BFloat16>(factor, source, target);
    return fold_as<Float32>(factor, source, target);
}

}  // namespace pleat
