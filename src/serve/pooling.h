#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "gguf/file.h"

namespace pleat {

/// How the hidden states of a text's tokens become its embedding.
enum class Pooling : uint8_t {
    none,  ///< not at all: one embedding a token
    mean,
    cls,  ///< the first token's
    last
};
std::string_view pooling_name(Pooling pooling);

/// What the file says ({architecture}.pooling_type), else the last token's. Throws Error when it
/// says something else than the above.
Pooling file_pooling(const gguf::File& file);

/// One row, or with `none` all of them. `rows`: F32 [n_embd] each, at least one.
std::vector<std::vector<float>> pooled(std::vector<std::vector<float>> rows, Pooling pooling);

/// The vector of length 1 that has its direction, as stock's server returns it; zeros stay.
std::vector<float> normalised(std::span<const float> embedding);

}  // namespace pleat
