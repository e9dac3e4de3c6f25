#include "serve/job.h"

#include <iterator>

namespace pleat {
namespace {

/// `event` becomes what happened in both, one after the other.
void append(JobEvent& event, JobEvent more) {
    event.text += more.text;
    event.tokens.insert(event.tokens.end(), std::make_move_iterator(more.tokens.begin()),
                        std::make_move_iterator(more.tokens.end()));
    event.timings = more.timings;
    event.last = event.last || more.last;
}

}  // namespace

void Job::push(JobEvent event) {
    {
        const std::lock_guard lock(mutex_);
        append(pending_, std::move(event));
        has_pending_ = true;
    }
    changed_.notify_all();
}

void Job::finish(JobResult result, JobEvent last) {
    last.last = true;
    last.timings = result.timings;
    {
        const std::lock_guard lock(mutex_);
        result_ = std::move(result);
        append(pending_, std::move(last));
        has_pending_ = true;
    }
    changed_.notify_all();
}

std::optional<JobEvent> Job::next(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, patience, [&] { return has_pending_; })) return std::nullopt;
    has_pending_ = false;
    return std::exchange(pending_, {});
}

}  // namespace pleat
