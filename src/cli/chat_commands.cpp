#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/memory.h"
#include "base/units.h"
#include "cli/chat_loop.h"
#include "cli/message_file.h"
#include "cli/plan_report.h"

namespace pleat::cli {
namespace {

constexpr std::string_view blank = " \t\n";

std::string trimmed(std::string_view text) {
    const size_t begin = text.find_first_not_of(blank);
    if (begin == std::string_view::npos) return {};
    return std::string(text.substr(begin, text.find_last_not_of(blank) + 1 - begin));
}

/// Quotes that a shell would have taken away.
std::string unquoted(const std::string& text) {
    const bool quoted = text.size() >= 2 && text.front() == text.back() &&
                        (text.front() == '"' || text.front() == '\'');
    return quoted ? text.substr(1, text.size() - 2) : text;
}

std::string speed(size_t n_tokens, double ms) {
    return fmt::format(
        "{} tokens in {:.1f} ms{}", n_tokens, ms,
        n_tokens > 0 && ms > 0.0
            ? fmt::format(", {:.2f} tokens/s", static_cast<double>(n_tokens) * 1000.0 / ms)
            : std::string());
}

std::string text_or(const std::string& text, std::string_view otherwise) {
    return text.empty() ? std::string(otherwise) : text;
}

}  // namespace

std::span<const ChatLoop::Command> ChatLoop::commands() {
    static constexpr std::array list{
        Command{"/plan", "SPEC", "go on under another plan: /plan 26,34; alone: the plan in use",
                &ChatLoop::plan},
        Command{"/stats", "", "tokens, speed, memory, the plan and its costs", &ChatLoop::stats},
        Command{"/set", "NAME VALUE", "a sampling flag or n: /set temp 0.7; alone: all of them",
                &ChatLoop::set},
        Command{"/system", "TEXT", "the system's message; \"\" = none; alone: what it is",
                &ChatLoop::system},
        Command{"/undo", "", "take the last message and its answer back", &ChatLoop::undo},
        Command{"/retry", "", "answer the last message again", &ChatLoop::retry},
        Command{"/clear", "", "begin anew; the system's message stays", &ChatLoop::clear},
        Command{"/save", "FILE", "write the conversation as JSON; /save! over an existing file",
                &ChatLoop::save},
        Command{"/save!", "FILE", "", &ChatLoop::save_over},
        Command{"/load", "FILE", "go on with a conversation that was saved", &ChatLoop::load},
        Command{"/help", "", "this list", &ChatLoop::help},
        Command{"/exit", "", "end the chat, as Ctrl-D does", &ChatLoop::exit},
    };
    return list;
}

void ChatLoop::command(const std::string& text) {
    const size_t end = text.find_first_of(blank);
    const std::string name = text.substr(0, end);
    const std::string argument = end == std::string::npos ? "" : trimmed(text.substr(end));
    const auto all = commands();
    const auto found = std::ranges::find(all, name, &Command::name);
    if (found == all.end()) {
        fail("there is no command {}; /help lists them (\"\"\"{}\"\"\" is said as it stands)", name,
             text);
    }
    if (found->argument.empty() && !argument.empty()) {
        fail("{} takes nothing after it, found \"{}\"", name, argument);
    }
    (this->*found->run)(argument);
}

void ChatLoop::plan(const std::string& spec) {
    if (spec.empty()) {
        return output_.write(
            load_log(session_.context().plan(), model_->shape(), context_settings_.cache));
    }
    use_plan(plan_options_.resolve_spec(unquoted(spec), "/plan", *model_));
    const size_t n_messages = session_.messages().size();
    output_.write(load_log(session_.context().plan(), model_->shape(), context_settings_.cache));
    if (!session_.empty()) {
        note(fmt::format("the conversation goes on: its {} messages are read anew with the next",
                         n_messages));
    }
}

/// Two caches need not fit at once, so the old context goes first; if the new one cannot be made,
/// what it needed is free again.
void ChatLoop::use_plan(LayerPlan plan) {
    const LayerPlan before = session_.context().plan();
    session_.set_context(nullptr);
    const auto make = [&](const LayerPlan& of) {
        return std::make_unique<Context>(model_, of, context_settings_, progress_bar(quiet_));
    };
    std::string error;
    try {
        session_.set_context(make(plan));
        return;
    } catch (const Error& e) {
        error = e.what();
    }
    session_.set_context(make(before));
    fail("{}", error);
}

void ChatLoop::stats(const std::string&) {
    const Context& c = session_.context();
    const Generated& g = last_.generated;
    std::string text;
    if (last_.n_prompt > 0) {
        text += fmt::format("prompt:     {} ({} of {} from the cache)\n",
                            speed(g.n_prompt, g.prompt_ms), last_.n_cached, last_.n_prompt);
        text += fmt::format("generation: {}\n", speed(g.n_decoded, g.generation_ms));
        text += fmt::format("end:        {}, seed {}\n", finish_reason_name(g.reason), g.seed);
    }
    text += fmt::format("answers:    {}; prompts {}; generation {}\n", totals_.n_answers,
                        speed(totals_.n_prompt, totals_.prompt_ms),
                        speed(totals_.n_decoded, totals_.generation_ms));
    text += fmt::format("context:    {} of {} tokens, {} messages\n", session_.n_held(),
                        context_settings_.cache.n_cells(), session_.messages().size());
    text +=
        fmt::format("memory:     cache {}, computing {}, weights {} ({} of them copied)\n",
                    format_bytes(c.cache_bytes()), format_bytes(c.compute_bytes()),
                    format_bytes(model_->loaded_bytes()), format_bytes(model_->allocated_bytes()));
    output_.write(text + load_log(c.plan(), model_->shape(), context_settings_.cache));
}

void ChatLoop::set(const std::string& text) {
    if (text.empty()) return output_.write(settings_.list());
    settings_.set(text, tokenizer_);
}

void ChatLoop::system(const std::string& text) {
    if (text.empty()) return output_.write(text_or(session_.system(), "(none)") + "\n");
    session_.set_system(unquoted(text));
}

void ChatLoop::clear(const std::string&) { session_.clear(); }

void ChatLoop::undo(const std::string&) {
    const std::optional<std::string> text = session_.undo();
    if (!text) fail("there is nothing to take back");
    note(fmt::format("taken back: {}", *text));
}

void ChatLoop::retry(const std::string&) {
    const ChatSession::Messages before = session_.messages();
    const std::optional<std::string> text = session_.undo();
    if (!text) fail("there is no message to answer again");
    bool kept = false;
    try {
        kept = ask(*text);
    } catch (...) {
        session_.set_messages(before);
        throw;
    }
    if (!kept) session_.set_messages(before);
}

void ChatLoop::save(const std::string& path) {
    if (path.empty()) fail("/save wants the name of a file");
    save_messages(path, session_.messages(), false);
}

void ChatLoop::save_over(const std::string& path) {
    if (path.empty()) fail("/save! wants the name of a file");
    save_messages(path, session_.messages(), true);
}

void ChatLoop::load(const std::string& path) {
    if (path.empty()) fail("/load wants the name of a file");
    try {
        session_.set_messages(load_messages(path));
    } catch (const Error& error) {
        fail("/load: {}", error.what());
    }
    note(fmt::format("{} messages from {}", session_.messages().size(), path));
}

void ChatLoop::help(const std::string&) {
    std::string text;
    for (const Command& c : commands()) {
        if (c.help.empty()) continue;
        text += fmt::format("{:<18} {}\n", fmt::format("{} {}", c.name, c.argument), c.help);
    }
    output_.write(text +
                  "A line that ends with \\ goes on in the next; \"\"\" begins and ends a text of "
                  "several lines.\nCtrl-C stops an answer, or clears the line.\n");
}

}  // namespace pleat::cli
