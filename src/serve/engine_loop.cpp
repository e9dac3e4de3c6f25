#include "serve/engine_loop.h"

#include <algorithm>
#include <utility>

namespace pleat {
namespace {

void end_cancelled(const ReadyJob& ready) {
    JobResult result{.reason = FinishReason::cancelled};
    result.timings.n_prompt = ready.job->request().prompt.size();
    if (ready.generation) result.seed = ready.generation->seed();
    ready.job->finish(std::move(result));
}

uint64_t n_ended(const EngineCounters& counters) {
    return counters.jobs_done + counters.jobs_failed + counters.jobs_cancelled;
}

}  // namespace

EngineLoop::EngineLoop(std::vector<SlotPool> pools, std::unique_ptr<EngineCounters> counters,
                       size_t queue_capacity)
    : counters_(std::move(counters)), pools_(std::move(pools)), queue_(queue_capacity) {
    publish();
    thread_ = std::thread([this] { run(); });
}

EngineLoop::~EngineLoop() {
    queue_.stop();
    thread_.join();
}

void EngineLoop::run() {
    while (busy() ? !queue_.stopped() : queue_.wait()) {
        const uint64_t before = n_ended(*counters_);
        for (SlotPool& pool : pools_) pool.drop_cancelled();
        admit();
        publish();
        for (SlotPool& pool : pools_) pool.step();
        publish();
        queue_.ended(n_ended(*counters_) - before);
    }
    for (SlotPool& pool : pools_) pool.cancel_all();
    end_waiting();
    publish();
}

bool EngineLoop::busy() const {
    return std::ranges::any_of(pools_, [](const SlotPool& pool) { return pool.busy(); });
}

void EngineLoop::admit() {
    queue_.offer([&](ReadyJob& ready) {
        const Job& job = *ready.job;
        if (!job.cancelled()) return pools_.at(job.request().variant).take(ready);
        end_cancelled(ready);
        ++counters_->jobs_cancelled;
        return true;
    });
}

void EngineLoop::end_waiting() {
    queue_.offer([&](ReadyJob& ready) {
        end_cancelled(ready);
        ++counters_->jobs_cancelled;
        return true;
    });
}

void EngineLoop::publish() {
    std::vector<SlotState> slots;
    for (size_t i = 0; i < pools_.size(); ++i) {
        const auto states = pools_[i].states(i);
        slots.insert(slots.end(), states.begin(), states.end());
    }
    const std::lock_guard lock(published_mutex_);
    published_slots_ = std::move(slots);
    published_counters_ = *counters_;
}

std::vector<SlotState> EngineLoop::slots() const {
    const std::lock_guard lock(published_mutex_);
    return published_slots_;
}

EngineCounters EngineLoop::counters() const {
    EngineCounters counters;
    {
        const std::lock_guard lock(published_mutex_);
        counters = published_counters_;
    }
    counters.jobs_refused = queue_.n_refused();
    counters.waiting = queue_.n_waiting();
    counters.running = queue_.n_running();
    return counters;
}

}  // namespace pleat
