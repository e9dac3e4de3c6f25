#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/context.h"

namespace pleat {

/// What a sequence of a context holds, and how much of it a new prompt can begin with so that no
/// bit of its answer changes. Kernels round differently with the number of rows, so a token may be
/// taken only where it was computed as it would be computed again: in a whole chunk of a prompt,
/// cut at multiples of the chunk's size from the beginning. What was generated was computed one
/// token at a time, and is run again.
class PromptCache {
  public:
    /// Keeps at most `n_snapshots` of the states of recurrent layers. The context must outlive it,
    /// and nobody else touches the sequence.
    PromptCache(Context& context, int32_t sequence, size_t chunk, size_t n_snapshots);

    /// Leading tokens of `prompt` that need not be computed: whole chunks, and never all, since the
    /// last token's logits are wanted.
    size_t reusable(std::span<const int32_t> prompt) const;
    /// Goes back to the first `n` tokens: 0, or what reusable() said.
    void rewind(size_t n);
    /// Makes this sequence begin with the first `n` tokens that another one holds: what reusable()
    /// said there.
    void adopt(const PromptCache& other, size_t n);
    /// After the context decoded `tokens` as one chunk at the end of the sequence.
    void append(std::span<const int32_t> tokens);

    size_t size() const { return tokens_.size(); }  ///< tokens held
    size_t n_exact() const { return n_exact_; }     ///< leading ones that can be used again
    size_t chunk() const { return chunk_; }
    int32_t sequence() const { return sequence_; }

  private:
    void keep_snapshot();
    const Snapshot* snapshot_at(size_t n) const;

    Context& context_;
    int32_t sequence_;
    size_t chunk_;
    size_t n_snapshots_;
    std::vector<int32_t> tokens_;
    size_t n_exact_ = 0;  ///< leading tokens computed in whole chunks
    std::vector<std::shared_ptr<const Snapshot>> snapshots_;  ///< by ascending length
};

}  // namespace pleat
