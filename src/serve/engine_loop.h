#pragma once

#include <mutex>
#include <thread>
#include <vector>

#include "serve/engine_state.h"
#include "serve/job_queue.h"
#include "serve/slot_pool.h"

namespace pleat {

/// The engine's thread: takes jobs from the queue into slots and lets the variants take turns, a
/// step each, for as long as there is something to do.
class EngineLoop {
  public:
    /// `pools`: one a variant. `counters` is what they count into.
    EngineLoop(std::vector<SlotPool> pools, std::unique_ptr<EngineCounters> counters,
               size_t queue_capacity);
    /// Cancels what runs and waits for the thread.
    ~EngineLoop();
    EngineLoop(const EngineLoop&) = delete;
    EngineLoop& operator=(const EngineLoop&) = delete;

    JobQueue& queue() { return queue_; }
    const Context& context(size_t variant) const { return pools_.at(variant).context(); }
    /// As they were after the last turn.
    std::vector<SlotState> slots() const;
    EngineCounters counters() const;

  private:
    void run();
    bool busy() const;
    void admit();
    void end_waiting();
    void publish();

    std::unique_ptr<EngineCounters> counters_;  ///< of the thread alone, as the pools
    std::vector<SlotPool> pools_;
    JobQueue queue_;
    size_t n_running_ = 0;

    mutable std::mutex published_mutex_;
    std::vector<SlotState> published_slots_;
    EngineCounters published_counters_;
    std::thread thread_;
};

}  // namespace pleat
