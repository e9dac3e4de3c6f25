#pragma once

#include <ggml.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace pleat {

/// Do zero bytes of this type stand for zeros (of either sign)? Asked of ggml's own decoder.
bool zero_bytes_are_zeros(ggml_type type);

/// Can a factor be multiplied into single elements of this type?
bool can_fold(ggml_type type);

struct FoldResult {
    uint64_t rounded = 0;  ///< elements whose product the type cannot hold exactly
    /// Index of the first finite element that became infinite, -1 = none.
    int64_t overflow = -1;
};

/// Writes `source` times `factor` to `target`, both of the same length, in elements of a type that
/// can_fold, each product rounded once.
FoldResult fold(ggml_type type, float factor, std::span<const std::byte> source,
                std::span<std::byte> target);

}  // namespace pleat
