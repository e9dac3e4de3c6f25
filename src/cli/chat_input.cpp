#include "cli/chat_input.h"

#include <string_view>

#include "base/error.h"

namespace pleat::cli {
namespace {

constexpr std::string_view fence = R"(""")";
const std::string first_prompt = "> ";
const std::string next_prompt = ". ";

using Read = std::function<LineEvent(const std::string&)>;

/// `begun`: lines came before it.
ChatInput interruption(const LineEvent& event, bool begun) {
    return {.kind = ChatInput::Kind::interrupted, .discarded = begun || !event.text.empty()};
}

/// `text` is what follows the opening """. A newline next to a mark is not part of the text.
ChatInput read_fenced(std::string text, const Read& read) {
    bool first = true;
    while (!text.ends_with(fence)) {
        const LineEvent event = read(next_prompt);
        if (event.kind == LineEvent::Kind::interrupted) return interruption(event, true);
        if (event.kind == LineEvent::Kind::end) {
            fail("the input ends inside {}: close the text with {}", fence, fence);
        }
        if (!first || !text.empty()) text += '\n';
        first = false;
        text += event.text;
    }
    text.resize(text.size() - fence.size());
    if (text.ends_with('\n')) text.pop_back();
    return {.text = std::move(text)};
}

}  // namespace

ChatInput read_chat_input(const Read& read) {
    LineEvent event = read(first_prompt);
    if (event.kind == LineEvent::Kind::interrupted) return interruption(event, false);
    if (event.kind == LineEvent::Kind::end) return {.kind = ChatInput::Kind::end};
    if (event.text.starts_with(fence)) return read_fenced(event.text.substr(fence.size()), read);
    std::string text = event.text;
    while (text.ends_with('\\')) {
        text.back() = '\n';
        event = read(next_prompt);
        if (event.kind == LineEvent::Kind::interrupted) return interruption(event, true);
        if (event.kind == LineEvent::Kind::end) break;
        text += event.text;
    }
    const bool command = text.starts_with('/');
    return {.kind = command ? ChatInput::Kind::command : ChatInput::Kind::text,
            .text = std::move(text)};
}

}  // namespace pleat::cli
