#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cache/ubatch.h"

namespace pleat {

/// One token to run: where it stands in its sequence, and whether its logits are wanted.
struct BatchToken {
    int32_t token = 0;
    int32_t position = 0;
    int32_t sequence = 0;
    bool output = false;
};

using Batch = std::vector<BatchToken>;

/// Cuts a batch where stock cuts it, since the cuts decide bits. One stream: consecutive runs of at
/// most n_ubatch tokens. Several streams: equal numbers of tokens of consecutive sequence ids, in
/// the order in which the batch first names them.
std::vector<Ubatch> split_ubatches(std::span<const BatchToken> batch, uint32_t n_ubatch,
                                   uint32_t n_stream);

}  // namespace pleat
