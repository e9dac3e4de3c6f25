#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "serve/server_slot.h"

namespace pleat {

/// Jobs that wait for a server slot, in the order in which they came: bounded, filled by any
/// thread, emptied by the engine's. It also knows how many of them run, so that an engine can be
/// drained.
class JobQueue {
  public:
    explicit JobQueue(size_t capacity) : capacity_(capacity) {}

    size_t capacity() const { return capacity_; }
    /// All of them or none; false when they do not fit or the queue is closed.
    bool push(std::vector<ReadyJob> jobs);

    /// Offers the jobs in their order; those that `takes` says yes to leave the queue and count as
    /// running. `takes` runs under the lock and moves the job out when it takes it.
    void offer(const std::function<bool(ReadyJob&)>& takes);
    /// `n` of those that ran have ended.
    void ended(size_t n);

    /// Waits until there is a job in the queue; false when stop() was called.
    bool wait();
    /// Takes no more jobs.
    void close();
    /// Closes, and wait() returns false from here on.
    void stop();
    bool stopped() const;
    /// Waits until nothing waits or runs; false when `patience` ended first.
    bool wait_until_idle(std::chrono::milliseconds patience);

    size_t n_waiting() const;
    size_t n_running() const;
    size_t n_refused() const;

  private:
    const size_t capacity_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<ReadyJob> jobs_;
    size_t n_running_ = 0;
    size_t n_refused_ = 0;
    bool closed_ = false;
    bool stopped_ = false;
};

}  // namespace pleat
