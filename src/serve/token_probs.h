#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "serve/job.h"

namespace pleat {

/// The log probability of a token that was drawn, and the `n_top` likeliest tokens with theirs (of
/// equal ones the lower ids), from the softmax over all logits, F32 [n_vocab], finite or minus
/// infinity.
TokenOutput token_output(int32_t drawn, std::span<const float> logits, size_t n_top);

}  // namespace pleat
