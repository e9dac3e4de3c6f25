#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pleat {

/// What one graph run computes: some tokens of a batch. In an equal split the tokens lie sequence
/// after sequence, each with the same number of them.
struct Ubatch {
    std::vector<int32_t> tokens;
    std::vector<int32_t> positions;
    std::vector<int32_t> sequences;
    std::vector<int32_t> batch_rows;   ///< where each token stood in the batch
    std::vector<int32_t> output_rows;  ///< rows of this ubatch whose logits are wanted, ascending
    uint32_t n_streams = 1;            ///< K/V streams taking part, consecutive from first_stream
    uint32_t first_stream = 0;
    std::vector<uint32_t> streams = {};  ///< those taking part where they lie anywhere; else empty
    uint32_t n_seqs = 1;  ///< of an equal split: sequences taking part, each with as many tokens

    uint32_t stream(uint32_t i) const { return streams.empty() ? first_stream + i : streams[i]; }
    /// The i-th sequence of an equal split.
    int32_t sequence(uint32_t i) const { return sequences[size_t{i} * n_tokens() / n_seqs]; }
    uint32_t n_tokens() const { return static_cast<uint32_t>(tokens.size()); }
    uint32_t n_stream_tokens() const { return n_tokens() / n_streams; }
};

}  // namespace pleat
