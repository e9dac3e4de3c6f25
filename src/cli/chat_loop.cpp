#include "cli/chat_loop.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "base/error.h"
#include "cli/interrupt.h"
#include "cli/reply_printer.h"

namespace pleat::cli {

ChatLoop::ChatLoop(Loaded loaded, const PlanOptions& plan, bool quiet, const Tokenizer& tokenizer,
                   const ChatFormat& format, ChatSettings settings, const std::string& system)
    : model_(std::move(loaded.model)),
      context_settings_(loaded.context->settings()),
      plan_options_(plan),
      quiet_(quiet),
      tokenizer_(tokenizer),
      session_(tokenizer, format),
      settings_(std::move(settings)) {
    session_.set_context(std::move(loaded.context));
    session_.set_system(system);
}

int ChatLoop::run() {
    if (reader_.interactive()) note("/help lists the commands, Ctrl-D ends the chat");
    bool interrupted = false;
    while (!ended_) {
        output_.check();
        try {
            const ChatInput input =
                read_chat_input([&](const std::string& prompt) { return reader_.read(prompt); });
            if (input.kind == ChatInput::Kind::interrupted) {
                // Who discards one text after the other wants to go on.
                if (std::exchange(interrupted, true) && !input.discarded) {
                    return interrupted_status;
                }
                note("Ctrl-C once more, or Ctrl-D, ends the chat");
                continue;
            }
            interrupted = false;
            handle(input);
        } catch (const Error& error) {
            print_error(error.what());
        }
    }
    output_.check();
    return failed_ && !reader_.interactive() ? 1 : 0;
}

void ChatLoop::handle(const ChatInput& input) {
    switch (input.kind) {
        case ChatInput::Kind::text:
            if (input.text.find_first_not_of(" \t\n") != std::string::npos) ask(input.text);
            return;
        case ChatInput::Kind::command:
            return command(input.text);
        case ChatInput::Kind::interrupted:
        case ChatInput::Kind::end:
            ended_ = true;
            return;
    }
}

bool ChatLoop::ask(const std::string& text) {
    const InterruptGuard guard(session_.context());
    ReplyPrinter printer(output_, reader_.interactive());
    ChatReply reply =
        session_.ask(text, settings_.params(tokenizer_),
                     {.on_text = [&](std::string_view raw) { printer.text(raw); },
                      .on_delta = [&](const ChatDelta& delta) { printer.delta(delta); },
                      .cancelled = [&] { return guard.interrupted() || output_.failed(); }});
    if (reply.kept || reply.generated.reason == FinishReason::cancelled) printer.end();
    output_.check();
    totals_.n_answers += reply.kept ? 1 : 0;
    totals_.n_prompt += reply.generated.n_prompt;
    totals_.n_decoded += reply.generated.n_decoded;
    totals_.prompt_ms += reply.generated.prompt_ms;
    totals_.generation_ms += reply.generated.generation_ms;
    last_ = std::move(reply);
    // Who runs a script wants all of it to end.
    if (guard.interrupted() && !reader_.interactive()) throw CLI::RuntimeError(interrupted_status);
    show_end(last_);
    return last_.kept;
}

void ChatLoop::show_end(const ChatReply& reply) {
    const uint32_t n_ctx = context_settings_.cache.n_cells();
    switch (reply.generated.reason) {
        case FinishReason::eos:
        case FinishReason::stop_string:
            return;
        case FinishReason::cancelled:
            return note(reply.kept ? "stopped; what was said so far stays"
                                   : "stopped before the answer began; the message is taken back");
        case FinishReason::length:
            return note(fmt::format("stopped after {} tokens (-n; /set n -1 = no limit)",
                                    reply.generated.tokens.size()));
        case FinishReason::context:
            break;
    }
    constexpr std::string_view remedy =
        "/undo takes the last turn back, /clear begins anew, a larger -c holds more";
    if (reply.kept) {
        return note(fmt::format("the context of {} tokens is full, so the answer ends here: {}",
                                n_ctx, remedy));
    }
    print_error(
        fmt::format("the conversation with this message has {} tokens, the context {}, so it was "
                    "not sent: {}",
                    reply.n_prompt, n_ctx, remedy));
}

void ChatLoop::note(const std::string& text) {
    if (!quiet_ || reader_.interactive()) fmt::print(stderr, "[{}]\n", text);
}

void ChatLoop::print_error(const std::string& text) {
    failed_ = true;
    fmt::print(stderr, "pleat: {}\n", text);
}

}  // namespace pleat::cli
