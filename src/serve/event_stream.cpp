#include "serve/event_stream.h"

#include <httplib.h>

#include <chrono>
#include <string_view>
#include <utility>

#include "serve/http_error.h"

namespace pleat {
namespace {

/// Between two looks at whether the client is still there.
constexpr std::chrono::milliseconds patience{20};

bool write(httplib::DataSink& sink, std::string_view text) {
    return text.empty() || sink.write(text.data(), text.size());
}

/// One step of the stream; false: the client has gone.
bool write_next(httplib::DataSink& sink, JobGroup& group, const EventWriter& writer) {
    if (!sink.is_writable()) return false;
    try {
        if (const auto next = group.next(patience)) {
            if (!write(sink, writer.event(*next, group.job(next->index)))) return false;
        }
        if (!group.done()) return true;
        if (!write(sink, writer.end())) return false;
    } catch (const RequestError& e) {
        group.cancel();
        if (!write(sink, event_text(e.body()))) return false;
    } catch (const std::exception&) {
        group.cancel();
        const RequestError error(500, "internal error");
        if (!write(sink, event_text(error.body()))) return false;
    }
    sink.done();
    return true;
}

}  // namespace

void stream_answers(httplib::Response& response, std::shared_ptr<JobGroup> group,
                    EventWriter writer) {
    response.set_header("Cache-Control", "no-cache");
    response.set_header("X-Accel-Buffering", "no");  // nginx would keep it back
    response.set_chunked_content_provider(
        "text/event-stream",
        [group, writer = std::move(writer)](size_t, httplib::DataSink& sink) {
            return write_next(sink, *group, writer);
        },
        [group](bool success) {
            if (!success) group->cancel();
        });
}

}  // namespace pleat
