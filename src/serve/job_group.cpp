#include "serve/job_group.h"

#include <httplib.h>

#include <algorithm>
#include <utility>

#include "serve/http_error.h"

namespace pleat {
namespace {

using std::chrono::milliseconds;

RequestError ended_by_server() { return {503, "the server ended the request before it was done"}; }

void check_result(const JobResult& result) {
    if (!result.error.empty()) throw RequestError(result.client_error ? 400 : 500, result.error);
    if (result.reason == FinishReason::cancelled) throw ended_by_server();
}

}  // namespace

JobGroup::JobGroup(std::vector<std::shared_ptr<Job>> jobs, std::function<bool()> ending)
    : jobs_(std::move(jobs)),
      ending_(std::move(ending)),
      ended_(jobs_.size(), false),
      n_running_(jobs_.size()) {}

std::shared_ptr<JobGroup> JobGroup::submit(Engine& engine, std::vector<std::shared_ptr<Job>> jobs) {
    try {
        if (!engine.submit(jobs)) {
            throw RequestError(503, "too many requests are waiting, or the server is about to end");
        }
    } catch (const RequestError&) {
        throw;
    } catch (const Error& e) {
        throw RequestError(400, e.what());
    }
    return std::make_shared<JobGroup>(std::move(jobs), [&engine] { return engine.stopping(); });
}

std::optional<JobGroup::Event> JobGroup::take(size_t index, milliseconds patience) {
    if (ended_[index]) return std::nullopt;
    std::optional<JobEvent> event = jobs_[index]->next(patience);
    if (!event) return std::nullopt;
    if (event->last) {
        ended_[index] = true;
        --n_running_;
        check_result(jobs_[index]->result());
    }
    return Event{.index = index, .event = std::move(*event)};
}

std::optional<JobGroup::Event> JobGroup::next(milliseconds patience) {
    std::optional<Event> event = next_of_any(patience);
    // The engine's own word on it may take a step, which a large model is long at.
    if (!event && !done() && ending_ && ending_()) throw ended_by_server();
    return event;
}

std::optional<JobGroup::Event> JobGroup::next_of_any(milliseconds patience) {
    // Alone, a job wakes its waiter. Of several each is asked in turn, since a thread can wait for
    // one only.
    constexpr milliseconds turn{2};
    const auto deadline = std::chrono::steady_clock::now() + patience;
    bool asked_all = false;
    while (n_running_ > 0) {
        for (size_t i = 0; i < jobs_.size(); ++i) {
            const size_t index = next_;
            next_ = (next_ + 1) % jobs_.size();
            milliseconds wait{0};
            if (n_running_ == 1) {
                wait = patience;
            } else if (asked_all) {
                wait = turn;
            }
            if (auto event = take(index, wait)) return event;
        }
        asked_all = true;
        if (std::chrono::steady_clock::now() >= deadline) return std::nullopt;
    }
    return std::nullopt;
}

std::vector<JobTimings> JobGroup::timings() const {
    std::vector<JobTimings> timings;
    for (const auto& job : jobs_) timings.push_back(job->result().timings);
    return timings;
}

void JobGroup::cancel() {
    for (size_t i = 0; i < jobs_.size(); ++i) {
        if (!ended_[i]) jobs_[i]->cancel();
    }
}

std::vector<Answer> wait_for_answers(JobGroup& group, const httplib::Request& request) {
    constexpr milliseconds patience{20};
    std::vector<Answer> answers(group.size());
    while (!group.done()) {
        const std::optional<JobGroup::Event> next = group.next(patience);
        if (next) {
            Answer& answer = answers[next->index];
            answer.text += next->event.text;
            answer.tokens.insert(answer.tokens.end(), next->event.tokens.begin(),
                                 next->event.tokens.end());
            if (next->event.last) answer.result = group.job(next->index).result();
        }
        if (!group.done() && request.is_connection_closed()) {
            throw client_gone();
        }
    }
    return answers;
}

}  // namespace pleat
