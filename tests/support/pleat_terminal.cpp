#include "support/pleat_terminal.h"

#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace pleat::test {

PleatTerminal::PleatTerminal(const std::vector<std::string>& arguments) {
    static const std::string program = PLEAT_PROGRAM;
    std::vector<char*> argv{const_cast<char*>(program.c_str())};
    for (const std::string& word : arguments) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    winsize size{.ws_row = 40, .ws_col = 200, .ws_xpixel = 0, .ws_ypixel = 0};
    child_ = ::forkpty(&terminal_, nullptr, nullptr, &size);
    if (child_ < 0) fail("no terminal can be opened: {}", std::strerror(errno));
    if (child_ == 0) {
        ::setenv("TERM", "xterm", 1);
        ::setenv("LC_ALL", "C", 1);  // as bare as a locale can be
        std::signal(SIGINT, SIG_DFL);
        ::execv(program.c_str(), argv.data());
        ::_exit(127);
    }
}

PleatTerminal::~PleatTerminal() {
    ::close(terminal_);
    if (child_ < 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
}

void PleatTerminal::type(std::string_view keys) const {
    while (!keys.empty()) {
        const ssize_t n = ::write(terminal_, keys.data(), keys.size());
        if (n < 0 && errno != EINTR) fail("typing: {}", std::strerror(errno));
        if (n > 0) keys.remove_prefix(static_cast<size_t>(n));
    }
}

void PleatTerminal::wait_for_editor() const {
    constexpr int turns = 60'000;
    for (int i = 0; i < turns; ++i) {
        termios now{};
        if (::tcgetattr(terminal_, &now) == 0 && (now.c_lflag & ICANON) == 0) return;
        ::usleep(1000);
    }
    fail("the program does not read keys");
}

bool PleatTerminal::read_more() {
    constexpr int patience_ms = 60'000;
    pollfd ready{.fd = terminal_, .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, patience_ms) <= 0) return false;
    std::array<char, 4096> bytes;
    const ssize_t n = ::read(terminal_, bytes.data(), bytes.size());  // EIO when it has ended
    if (n <= 0) return false;
    seen_.append(bytes.data(), static_cast<size_t>(n));
    return true;
}

std::string PleatTerminal::wait_for(std::string_view text) {
    size_t at = 0;
    while ((at = seen_.find(text)) == std::string::npos) {
        if (!read_more()) fail("\"{}\" did not appear, but: {}", text, seen_);
    }
    const std::string before = seen_.substr(0, at + text.size());
    seen_.erase(0, before.size());
    return before;
}

std::string PleatTerminal::rest() {
    while (read_more()) {
    }
    return std::exchange(seen_, {});
}

int PleatTerminal::wait() {
    int status = 0;
    while (::waitpid(child_, &status, 0) < 0) {
        if (errno != EINTR) fail("waiting for pleat: {}", std::strerror(errno));
    }
    child_ = -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace pleat::test
