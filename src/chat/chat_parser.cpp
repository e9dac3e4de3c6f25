#include "chat/chat_parser.h"

#include <algorithm>
#include <optional>

#include "chat/call_reader.h"
#include "text/utf8_stream.h"

namespace pleat {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

size_t trailing_space(std::string_view text) {
    size_t n = 0;
    while (n < text.size() && is_space(text[text.size() - 1 - n])) ++n;
    return n;
}

/// Length of the longest end of `text` that may become `mark`.
size_t partial(std::string_view text, std::string_view mark) {
    for (size_t n = std::min(text.size(), mark.size() - 1); n > 0; --n) {
        if (text.ends_with(mark.substr(0, n))) return n;
    }
    return 0;
}

/// splitmix64 (Steele, Lea and Flood 2014).
uint64_t next_random(uint64_t& state) {
    uint64_t z = state += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
}

std::string make_id(uint64_t seed, size_t index) {
    static constexpr std::string_view letters =
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    uint64_t state = seed ^ (0xD1342543DE82EF95 * (index + 1));
    std::string id = "call_";
    for (int i = 0; i < 24; ++i) id += letters[next_random(state) % letters.size()];
    return id;
}

}  // namespace

struct ChatParser::State {
    enum class Mode : uint8_t {
        start,  ///< white space, before the first mark or the first text
        reasoning,
        content,
        call,
    };

    State(ChatSyntax s, uint64_t seed)
        : syntax(std::move(s)), marks(call_marks(syntax.tools)), id_seed(seed) {
        if (syntax.reasoning.close.empty()) syntax.reasoning_open = false;
    }

    ChatSyntax syntax;
    std::vector<std::string> marks;
    uint64_t id_seed;
    Utf8Stream characters;
    ChatDelta delta;

    Mode mode = Mode::start;
    std::string held;            ///< not yet decided upon
    bool skip_space = false;     ///< in front of reasoning, or of content that follows something
    bool may_begin_call = true;  ///< a call without a mark (llama3) could stand here

    std::unique_ptr<CallReader> reader;
    std::string call_text;  ///< all of the call, its mark and the space before it
    size_t next_index = 0;
    bool announced = false;  ///< a delta has told of the call
    size_t n_whole = 0;

    void feed(std::string_view text);
    void finish();

  private:
    void step(char c);
    void step_start();
    void step_reasoning();
    void step_content();
    void begin_call(std::string_view mark, size_t mark_at);
    void step_call(char c);
    void tell_of_call();
    void end_call();
    void break_call();
    void show_content(size_t n);
};

void ChatParser::State::feed(std::string_view text) {
    for (const char c : text) step(c);
}

void ChatParser::State::step(char c) {
    if (mode == Mode::call) return step_call(c);
    if (skip_space && held.empty() && is_space(c)) return;
    held += c;
    switch (mode) {
        case Mode::start:
            return step_start();
        case Mode::reasoning:
            return step_reasoning();
        default:
            return step_content();
    }
}

void ChatParser::State::step_start() {
    const std::string& open = syntax.reasoning.open;
    const std::string_view text =
        std::string_view(held).substr(std::min(held.size(), held.find_first_not_of(" \t\n\r")));
    if (!open.empty()) {
        if (text == open) {
            held.clear();
            skip_space = true;
            mode = Mode::reasoning;
            return;
        }
        if (open.starts_with(text)) return;
    }
    mode = syntax.reasoning_open ? Mode::reasoning : Mode::content;
    skip_space = syntax.reasoning_open;
    const std::string again = std::exchange(held, {});
    feed(again);
}

void ChatParser::State::step_reasoning() {
    const std::string& close = syntax.reasoning.close;
    if (held.ends_with(close)) {
        held.resize(held.size() - close.size());
        held.resize(held.size() - trailing_space(held));
        delta.reasoning += held;
        held.clear();
        mode = Mode::content;
        skip_space = true;
        return;
    }
    const size_t mark = partial(held, close);
    const size_t shown = held.size() - mark;
    const size_t n = shown - trailing_space(std::string_view(held).substr(0, shown));
    delta.reasoning.append(held, 0, n);
    held.erase(0, n);
    if (n > 0) skip_space = false;
}

void ChatParser::State::show_content(size_t n) {
    if (n == 0) return;
    delta.content.append(held, 0, n);
    held.erase(0, n);
    skip_space = false;
    may_begin_call = false;
}

void ChatParser::State::step_content() {
    if (syntax.tools == ToolForm::none) return show_content(held.size());
    size_t may_be_mark = 0;
    for (const std::string& mark : marks) {
        if (held.ends_with(mark)) return begin_call(mark, held.size() - mark.size());
        may_be_mark = std::max(may_be_mark, partial(held, mark));
    }
    if (syntax.tools == ToolForm::llama3 && may_begin_call) {
        // Several calls are written one after the other, some with a semicolon in between.
        const size_t text = held.find_first_not_of(n_whole > 0 ? " \t\n\r;" : " \t\n\r");
        if (text == std::string::npos) return;
        if (held[text] == '{') return begin_call("", text);
    }
    const size_t shown = held.size() - may_be_mark;
    show_content(shown - trailing_space(std::string_view(held).substr(0, shown)));
}

void ChatParser::State::begin_call(std::string_view mark, size_t mark_at) {
    // The space in front of it comes back when it turns out to be none.
    call_text = held.substr(0, mark_at + mark.size());
    const std::string begun = held.substr(call_text.size());
    held.clear();
    mode = Mode::call;
    reader = make_call_reader(syntax, mark);
    announced = false;
    feed(begun);
}

void ChatParser::State::step_call(char c) {
    const CallReader::Status status = reader->feed(c);
    if (status == CallReader::Status::bad) {
        break_call();
        return step(c);
    }
    call_text += c;
    tell_of_call();
    if (status == CallReader::Status::done) end_call();
}

void ChatParser::State::tell_of_call() {
    if (reader->name().empty()) return;
    std::string arguments = reader->take_arguments();
    if (!announced) {
        delta.calls.push_back({next_index, make_id(id_seed, next_index), reader->name(), {}});
        announced = true;
    }
    if (arguments.empty()) return;
    if (delta.calls.empty() || delta.calls.back().index != next_index) {
        delta.calls.push_back({.index = next_index});
    }
    delta.calls.back().arguments += arguments;
}

void ChatParser::State::end_call() {
    ++next_index;
    ++n_whole;
    reader.reset();
    call_text.clear();
    mode = Mode::content;
    skip_space = true;
    may_begin_call = true;
}

void ChatParser::State::break_call() {
    const auto is_of_it = [&](const ToolCallDelta& d) { return d.index == next_index; };
    const auto begins_it = [&](const ToolCallDelta& d) { return is_of_it(d) && !d.id.empty(); };
    const bool stays =
        announced && !syntax.takes_back && std::ranges::none_of(delta.calls, begins_it);
    if (announced) {
        if (!stays) std::erase_if(delta.calls, is_of_it);
        delta.broken_calls.push_back(next_index);
        ++next_index;
    }
    reader.reset();
    mode = Mode::content;
    skip_space = false;
    may_begin_call = false;
    const std::string text = std::exchange(call_text, {});
    if (!stays) delta.content += text;
}

void ChatParser::State::finish() {
    if (mode == Mode::call) {
        if (reader->whole()) {
            tell_of_call();
            return end_call();
        }
        return break_call();
    }
    if (mode == Mode::start && syntax.reasoning_open) mode = Mode::reasoning;
    (mode == Mode::reasoning ? delta.reasoning : delta.content) += std::exchange(held, {});
}

ChatParser::ChatParser(ChatSyntax syntax, uint64_t id_seed)
    : state_(std::make_unique<State>(std::move(syntax), id_seed)) {}
ChatParser::~ChatParser() = default;
ChatParser::ChatParser(ChatParser&&) noexcept = default;

ChatDelta ChatParser::feed(std::string_view text) {
    state_->feed(state_->characters.feed(text));
    return std::exchange(state_->delta, {});
}

ChatDelta ChatParser::finish() {
    state_->feed(state_->characters.flush());
    state_->finish();
    return std::exchange(state_->delta, {});
}

size_t ChatParser::n_calls() const { return state_->n_whole; }

void ChatAnswerBuilder::add(const ChatDelta& delta) {
    answer_.content += delta.content;
    answer_.reasoning += delta.reasoning;
    for (const ToolCallDelta& part : delta.calls) {
        if (calls_.empty() || calls_.back().index != part.index) {
            calls_.push_back({part.index, {part.id, part.name, {}}});
        }
        calls_.back().call.arguments += part.arguments;
    }
    for (const size_t index : delta.broken_calls) {
        std::erase_if(calls_, [&](const Call& call) { return call.index == index; });
    }
}

ChatAnswer ChatAnswerBuilder::answer() const {
    ChatAnswer answer = answer_;
    for (const Call& call : calls_) answer.calls.push_back(call.call);
    return answer;
}

ChatAnswer parse_answer(const ChatSyntax& syntax, uint64_t id_seed, std::string_view text) {
    ChatParser parser(syntax, id_seed);
    ChatAnswerBuilder builder;
    builder.add(parser.feed(text));
    builder.add(parser.finish());
    return builder.answer();
}

}  // namespace pleat
