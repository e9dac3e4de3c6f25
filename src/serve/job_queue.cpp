#include "serve/job_queue.h"

#include <iterator>

namespace pleat {

bool JobQueue::push(std::vector<ReadyJob> jobs) {
    {
        const std::lock_guard lock(mutex_);
        if (closed_ || jobs_.size() + jobs.size() > capacity_) {
            n_refused_ += jobs.size();
            return false;
        }
        jobs_.insert(jobs_.end(), std::make_move_iterator(jobs.begin()),
                     std::make_move_iterator(jobs.end()));
    }
    changed_.notify_all();
    return true;
}

void JobQueue::offer(const std::function<bool(ReadyJob&)>& takes) {
    const std::lock_guard lock(mutex_);
    for (auto job = jobs_.begin(); job != jobs_.end();) {
        if (takes(*job)) {
            ++n_running_;
            job = jobs_.erase(job);
        } else {
            ++job;
        }
    }
}

void JobQueue::ended(size_t n) {
    {
        const std::lock_guard lock(mutex_);
        n_running_ -= n;
    }
    changed_.notify_all();
}

bool JobQueue::wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopped_ || !jobs_.empty(); });
    return !stopped_;
}

void JobQueue::close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
}

void JobQueue::stop() {
    {
        const std::lock_guard lock(mutex_);
        closed_ = true;
        stopped_ = true;
    }
    changed_.notify_all();
}

bool JobQueue::stopped() const {
    const std::lock_guard lock(mutex_);
    return stopped_;
}

bool JobQueue::wait_until_idle(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, patience, [&] { return jobs_.empty() && n_running_ == 0; });
}

size_t JobQueue::n_waiting() const {
    const std::lock_guard lock(mutex_);
    return jobs_.size();
}

size_t JobQueue::n_running() const {
    const std::lock_guard lock(mutex_);
    return n_running_;
}

size_t JobQueue::n_refused() const {
    const std::lock_guard lock(mutex_);
    return n_refused_;
}

}  // namespace pleat
