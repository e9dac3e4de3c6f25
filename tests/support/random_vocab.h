#pragma once

#include <vector>

#include "gguf/value.h"

namespace pleat::test {

/// The metadata of a byte-level BPE vocabulary (GPT-2's way) of exactly `n_vocab` tokens that takes
/// any text: the 256 bytes, merges of two letters, unused tokens where merges run out, and last
/// <|im_start|>, <|im_end|> and <|endoftext|> (BOS and EOS). Throws Error when n_vocab < 259.
std::vector<gguf::KeyValue> random_vocab(int n_vocab);

}  // namespace pleat::test
