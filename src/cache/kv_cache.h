#pragma once

#include <ggml-cpp.h>
#include <ggml.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cache/cells.h"
#include "cache/slot_streams.h"
#include "cache/ubatch.h"
#include "plan/cost.h"
#include "plan/plan.h"
#include "plan/shape.h"

namespace pleat {

/// Where the tokens of one ubatch go: cells of their streams, in token order.
struct Placement {
    std::vector<uint32_t> cells;
    uint32_t n_kv = 0;                     ///< cells the graph looks at, padded as stock pads
    std::vector<uint32_t> n_kv_each = {};  ///< the same of each stream; n_kv is the largest
};

enum class CacheKind { full, window };

/// The K/V slots of one kind (full or window): tensors per slot, one cell layout for all of them.
class KvCache {
  public:
    struct Slots {
        ggml_tensor* k = nullptr;  ///< [n_head_kv * head_dim_k, n_cells, n_stream]
        ggml_tensor* v = nullptr;  ///< the same of V; transposed, of the widest layer's width
    };

    /// Allocates the plan's slots of this kind, cleared to zero (a masked cell must be finite).
    /// Throws Error when memory runs out.
    KvCache(const LayerPlan& plan, const ModelShape& shape, const CacheSettings& settings,
            CacheKind kind);
    /// The same for any slots, each with streams of its own number, of n_cells each; slots of
    /// another kind stay empty. Which token a cell holds is then the caller's business: place,
    /// remove, copy and stream are not for such a cache.
    KvCache(std::span<const SlotStreams> slots, uint32_t n_cells, const ModelShape& shape,
            const CacheSettings& settings, CacheKind kind);

    bool empty() const { return slots_.empty(); }
    const Slots& slot(int32_t index) const;  ///< by Pass::slot; must be of this kind
    bool has(int32_t index) const;
    uint32_t n_cells() const { return n_cells_; }
    /// Elements of a V row; all slots of a cache agree where V lies transposed.
    uint32_t n_embd_v() const { return n_embd_v_; }
    uint32_t n_stream() const { return static_cast<uint32_t>(streams_.size()); }
    /// Size of the Hadamard matrix that Q and K (V and the attention's result) are turned by, so
    /// that quantising loses less: it spreads outliers over a group of channels. 0 = none.
    uint32_t rotation_k() const { return rotation_k_; }
    uint32_t rotation_v() const { return rotation_v_; }
    bool flash_attention() const { return flash_attention_; }
    uint64_t bytes() const { return bytes_; }

    /// How to go back to an earlier state: a window cache uses cells again, so a batch of several
    /// ubatches may overwrite what the tokens before it would see.
    struct Undo {
        struct Cell {
            uint32_t stream = 0;
            uint32_t index = 0;
        };
        std::vector<Cells> streams;
        std::vector<Cell> overwritten;
        std::vector<std::byte> data;  ///< what these held
    };
    Undo begin_undo() const { return {.streams = streams_, .overwritten = {}, .data = {}}; }
    /// Everything is as it was when `undo` began, if all was placed with it.
    void go_back(const Undo& undo);

    /// Finds cells for a ubatch and puts its tokens there; no value (and no change) when full.
    /// `undo`, when given, takes what is about to be overwritten.
    std::optional<Placement> place(const Ubatch& ubatch, Undo* undo = nullptr);

    /// Are there empty cells for `n[s]` more tokens in every stream s?
    bool fits(std::span<const uint32_t> n) const;

    const Cells& stream(uint32_t index) const { return streams_.at(index); }
    uint32_t stream_of(int32_t sequence) const {
        return n_stream() == 1 ? 0 : static_cast<uint32_t>(sequence);
    }

    void remove(int32_t sequence, int32_t begin, int32_t end);

    /// Of a sequence that has its stream to itself: as in Cells.
    bool can_rewind(int32_t sequence, int32_t length) const {
        return streams_.at(stream_of(sequence)).can_rewind(length);
    }
    void rewind(int32_t sequence, int32_t length) {
        if (tracks_tokens_) streams_.at(stream_of(sequence)).rewind(sequence, length);
    }

    /// Shares cells within a stream, copies the data between streams (then `to` must be empty and
    /// the range the whole sequence).
    void copy(int32_t from, int32_t to, int32_t begin, int32_t end);
    void clear();

  private:
    void allocate(std::span<const SlotStreams> slots, const ModelShape& shape,
                  const CacheSettings& settings, CacheKind kind, const LayerShape& first);
    template <typename Call>
    void for_each_piece(const Undo::Cell& cell, Call call) const;

    std::vector<Slots> slots_;  ///< by Pass::slot; null tensors for slots of another kind
    std::vector<Cells> streams_;
    ggml_context_ptr context_;
    ggml_backend_buffer_ptr buffer_;
    bool tracks_tokens_ = false;  ///< the full cache always does: a sequence's length is read there
    bool flash_attention_ = true;
    uint32_t n_cells_ = 0;
    uint32_t n_embd_v_ = 0;
    uint32_t rotation_k_ = 0;
    uint32_t rotation_v_ = 0;
    uint64_t bytes_ = 0;
};

}  // namespace pleat
