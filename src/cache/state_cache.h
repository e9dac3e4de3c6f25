#pragma once

#include <ggml-cpp.h>
#include <ggml.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/slot_streams.h"
#include "plan/cost.h"
#include "plan/plan.h"
#include "plan/shape.h"

namespace pleat {

/// The recurrent slots of a plan: what each pass remembers of every sequence. A row per sequence,
/// row = sequence id; a sequence that has not begun has a row of zeros. A state takes in tokens one
/// after another and cannot be cut back.
class StateCache {
  public:
    struct Slots {
        ggml_tensor* conv = nullptr;   ///< F32 [n_conv_state, n_seq]
        ggml_tensor* delta = nullptr;  ///< F32 [n_delta_state, n_seq]
    };

    /// Allocates the plan's recurrent slots, cleared to zero. Throws Error when memory runs out.
    StateCache(const LayerPlan& plan, const ModelShape& shape, const CacheSettings& settings);
    /// The same for any slots, each with rows of its own number; those that are not recurrent stay
    /// empty. save, restore and copy are not for such a cache.
    StateCache(std::span<const SlotStreams> slots, const ModelShape& shape);

    bool empty() const { return !buffer_; }
    const Slots& slot(int32_t index) const { return slots_.at(static_cast<size_t>(index)); }
    uint64_t bytes() const { return bytes_; }

    void clear(int32_t sequence);
    void copy(int32_t from, int32_t to);
    void clear();

    /// All states of one sequence, to put it back where it was.
    std::vector<std::byte> save(int32_t sequence) const;
    void restore(int32_t sequence, const std::vector<std::byte>& saved);

  private:
    void allocate(std::span<const SlotStreams> slots, const ModelShape& shape);
    template <typename Call>
    void for_each_row(int32_t sequence, Call call) const;

    std::vector<Slots> slots_;  ///< by Pass::slot; null tensors for slots of another kind
    ggml_context_ptr context_;
    ggml_backend_buffer_ptr buffer_;
    uint64_t bytes_ = 0;
};

}  // namespace pleat
