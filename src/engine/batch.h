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

/// How stock cuts a batch: the cuts decide bits.
enum class UbatchSplit {
    runs,               ///< consecutive runs of at most n_ubatch tokens
    equal,              ///< equal numbers of tokens of several sequences
    equal_consecutive,  ///< the same, of sequences whose ids follow each other: a stream each
    equal_streams       ///< the same, of any sequences: not stock's, where streams are one view
};

/// Equal splits take sequences in the order in which the batch first names them.
std::vector<Ubatch> split_ubatches(std::span<const BatchToken> batch, uint32_t n_ubatch,
                                   UbatchSplit split);

}  // namespace pleat
