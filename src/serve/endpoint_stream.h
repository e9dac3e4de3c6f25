#pragma once

#include <memory>
#include <string>

#include "serve/api_state.h"
#include "serve/event_stream.h"

namespace pleat {

/// Streams the answers in an endpoint's own form: `stream` has event(event, job) and end(timings).
template <typename Stream>
void stream_answers(ApiState& state, httplib::Response& response,
                    const std::shared_ptr<JobGroup>& group, std::shared_ptr<Stream> stream) {
    stream_answers(response, group,
                   {.event = [stream](const JobGroup::Event& event,
                                      const Job& job) { return stream->event(event, job); },
                    .end =
                        [&state, stream, group = group.get()] {
                            state.note_lengths(*group);
                            return stream->end(group->timings());
                        }});
}

}  // namespace pleat
