#pragma once

#include <functional>
#include <memory>
#include <string>

#include "serve/job_group.h"

namespace httplib {
struct Response;
}

namespace pleat {

/// How an answer is told as server-sent events: texts made of event_text().
struct EventWriter {
    /// What happened to one job; its last event comes with its result.
    std::function<std::string(const JobGroup::Event& event, const Job& job)> event;
    /// When all have ended.
    std::function<std::string()> end;
};

/// Answers with a stream that lasts as long as the jobs. A client that goes away ends them within
/// one step; one that reads slowly holds up nobody. An error ends the stream with an event
/// {"error": ...}.
void stream_answers(httplib::Response& response, std::shared_ptr<JobGroup> group,
                    EventWriter writer);

}  // namespace pleat
