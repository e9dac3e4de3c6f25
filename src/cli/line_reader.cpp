#include "cli/line_reader.h"

#include <histedit.h>
#include <langinfo.h>
#include <unistd.h>

#include <atomic>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string_view>

#include "base/error.h"
#include "text/utf8_stream.h"

namespace pleat::cli {
namespace {

std::string without_line_end(std::string_view text) {
    if (text.ends_with('\n')) text.remove_suffix(1);
    if (text.ends_with('\r')) text.remove_suffix(1);
    return to_utf8(text);
}

/// libedit reads characters by the locale. Only their encoding is taken from it: numbers keep
/// their points.
void use_utf8() {
    if (std::setlocale(LC_CTYPE, "") != nullptr &&
        std::strcmp(nl_langinfo(CODESET), "UTF-8") == 0) {
        return;
    }
    std::setlocale(LC_CTYPE, "C.UTF-8");
}

std::atomic<bool> interrupt_pending = false;

/// Ctrl-C between two lines, when the terminal still sends it as a signal, is for the next line.
void remember_interrupts() {
    struct sigaction before {};
    sigaction(SIGINT, nullptr, &before);
    if (before.sa_handler == SIG_IGN) return;
    struct sigaction action {};
    action.sa_handler = [](int) { interrupt_pending.store(true); };
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, nullptr);
}

}  // namespace

/// libedit's line editor. While it edits, the terminal sends Ctrl-C as a character, so that it can
/// clear a line instead of ending the program, and with it Ctrl-Z.
struct LineReader::Editor {
    Editor() {
        use_utf8();
        remember_interrupts();
        history.reset(history_init());
        line.reset(el_init("pleat", stdin, stdout, stderr));
        if (!line || !history) fail("the line editor cannot be started");
        HistEvent event;
        constexpr int recalled_lines = 1000;
        ::history(history.get(), &event, H_SETSIZE, recalled_lines);
        ::history(history.get(), &event, H_SETUNIQUE, 1);
        el_set(line.get(), EL_CLIENTDATA, this);
        el_set(line.get(), EL_PROMPT, &prompt_of);
        el_set(line.get(), EL_EDITOR, "emacs");
        el_set(line.get(), EL_HIST, ::history, history.get());
        el_set(line.get(), EL_SIGNAL, 1);
        el_set(line.get(), EL_SETTY, "-d", "-isig", nullptr);
        el_set(line.get(), EL_ADDFN, "pleat-interrupt", "Discard the line", &interrupt);
        el_set(line.get(), EL_BIND, "^C", "pleat-interrupt", nullptr);
        el_set(line.get(), EL_ADDFN, "pleat-suspend", "Go to the shell", &suspend);
        el_set(line.get(), EL_BIND, "^Z", "pleat-suspend", nullptr);
        el_set(line.get(), EL_BIND, "^R", "em-inc-search-prev", nullptr);
        el_set(line.get(), EL_BIND, "\\e[3~", "ed-delete-next-char", nullptr);
    }

    static Editor& of(EditLine* el) {
        void* data = nullptr;
        el_get(el, EL_CLIENTDATA, &data);
        return *static_cast<Editor*>(data);
    }
    static char* prompt_of(EditLine* el) { return of(el).prompt.data(); }
    static unsigned char interrupt(EditLine* el, int) {
        of(el).interrupted = true;
        std::fputs("^C\n", stdout);
        return CC_NEWLINE;
    }
    static unsigned char suspend(EditLine*, int) {
        std::raise(SIGTSTP);  // libedit's handler tidies the terminal up and comes back to the line
        return CC_REFRESH;
    }

    LineEvent read() {
        interrupted = interrupt_pending.exchange(false);
        if (interrupted) return {.kind = LineEvent::Kind::interrupted};
        int count = 0;
        const char* const text = el_gets(line.get(), &count);
        const bool any = text != nullptr && count > 0;
        LineEvent event;
        if (any) event.text = without_line_end({text, static_cast<size_t>(count)});
        if (interrupt_pending.exchange(false) || interrupted) {
            event.kind = LineEvent::Kind::interrupted;
            return event;
        }
        if (!any) {
            std::fputs("\n", stdout);  // the shell's prompt begins a line
            return {.kind = LineEvent::Kind::end};
        }
        HistEvent entered;
        if (!event.text.empty()) ::history(history.get(), &entered, H_ENTER, event.text.c_str());
        return event;
    }

    struct EndHistory {
        void operator()(History* h) const { history_end(h); }
    };
    struct EndLine {
        void operator()(EditLine* el) const { el_end(el); }
    };
    std::unique_ptr<History, EndHistory> history;
    std::unique_ptr<EditLine, EndLine> line;
    std::string prompt;
    bool interrupted = false;
};

LineReader::LineReader() {
    if (::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0) {
        editor_ = std::make_unique<Editor>();
    }
}

LineReader::~LineReader() = default;

LineEvent LineReader::read(const std::string& prompt) {
    if (editor_) {
        editor_->prompt = prompt;
        return editor_->read();
    }
    std::string line;
    if (!std::getline(std::cin, line)) return {.kind = LineEvent::Kind::end};
    return {.text = without_line_end(line)};
}

}  // namespace pleat::cli
