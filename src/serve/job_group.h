#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "serve/answer.h"
#include "serve/engine.h"
#include "serve/job.h"

namespace httplib {
struct Request;
}

namespace pleat {

/// The jobs of one request. What has not ended when this goes away is cancelled, so that a request
/// that nobody waits for holds no server slot.
class JobGroup {
  public:
    /// Of jobs that the engine has; see submit(). `ending`: it will not end them any more.
    explicit JobGroup(std::vector<std::shared_ptr<Job>> jobs, std::function<bool()> ending = {});
    ~JobGroup() { cancel(); }
    JobGroup(const JobGroup&) = delete;
    JobGroup& operator=(const JobGroup&) = delete;

    /// Gives them to the engine first. Throws RequestError: 503 when the queue is full, 400 when a
    /// job can never run.
    static std::shared_ptr<JobGroup> submit(Engine& engine, std::vector<std::shared_ptr<Job>> jobs);

    struct Event {
        size_t index = 0;
        JobEvent event = {};
    };
    /// What happened next to any of them; nothing when `patience` ended first. Throws RequestError
    /// when a job failed: by the request's own fault 400, else 500, or 503 when the server ends.
    std::optional<Event> next(std::chrono::milliseconds patience);

    bool done() const { return n_running_ == 0; }
    size_t size() const { return jobs_.size(); }
    const Job& job(size_t index) const { return *jobs_.at(index); }
    /// Of all, in their order; once done().
    std::vector<JobTimings> timings() const;
    void cancel();

  private:
    std::optional<Event> take(size_t index, std::chrono::milliseconds patience);
    std::optional<Event> next_of_any(std::chrono::milliseconds patience);

    std::vector<std::shared_ptr<Job>> jobs_;
    std::function<bool()> ending_;
    std::vector<bool> ended_;
    size_t n_running_;
    size_t next_ = 0;  ///< whose turn it is to be asked
};

/// Waits for all of them. Throws as next() does, and RequestError (499) when the client goes away.
std::vector<Answer> wait_for_answers(JobGroup& group, const httplib::Request& request);

}  // namespace pleat
