#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/context.h"
#include "serve/engine_state.h"
#include "serve/pooling.h"
#include "serve/server_slot.h"

namespace pleat {

/// How the slots of a variant are used.
struct SlotPolicy {
    bool deterministic = false;  ///< every sequence is decoded alone
    size_t n_snapshots = 4;
    float similarity = 0.1F;  ///< share of a prompt that a slot must hold to be preferred
    Pooling pooling = Pooling::last;
};

/// The server slots of one variant: which job goes to which, and what its context computes next.
/// Belongs to the engine's thread.
class SlotPool {
  public:
    SlotPool(std::unique_ptr<Context> context, const SlotPolicy& policy, EngineCounters& counters);

    const Context& context() const { return *context_; }
    bool busy() const;
    std::vector<SlotState> states(size_t variant) const;

    /// Begins with a job if there is a slot for it; moves it out then.
    bool take(ReadyJob& job);
    void drop_cancelled();
    void cancel_all();

    /// One token of every sequence that generates, then one chunk of one prompt.
    void step();

  private:
    using Slots = std::span<ServerSlot* const>;

    ServerSlot* slot_for(const JobRequest& request);
    void decode_tokens();
    void decode_tokens_of(Slots slots);
    void decode_chunk();
    bool waits_for_another(const ServerSlot& slot) const;
    void adopt_prefix(ServerSlot& slot);
    void decode_chunk_of(ServerSlot& slot);
    /// Decodes, and breaks the slots' jobs off where that fails; false then.
    bool decode(Slots slots, std::span<const BatchToken> batch, Outputs outputs);

    std::unique_ptr<Context> context_;
    SlotPolicy policy_;
    EngineCounters& counters_;
    std::vector<ServerSlot> slots_;
    size_t next_prompt_ = 0;  ///< the slot whose prompt is looked at first
};

}  // namespace pleat
