#include "cli/shutdown.h"

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cassert>
#include <cerrno>
#include <utility>

namespace pleat::cli {
namespace {

// A signal handler reaches nothing but globals.
std::atomic<int> pipe_end = -1;
std::atomic<bool> signal_seen = false;
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

void write_to(int fd, char byte) {
    const int before = errno;
    [[maybe_unused]] const ssize_t n = ::write(fd, &byte, 1);
    errno = before;
}

void on_shutdown_signal(int signal) {
    if (signal_seen.exchange(true)) ::_exit(128 + signal);
    write_to(pipe_end.load(), 's');
}

void install(int signal, struct sigaction& before) {
    sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_IGN) return;
    struct sigaction action {};
    action.sa_handler = on_shutdown_signal;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    sigaction(signal, &action, nullptr);
}

}  // namespace

ShutdownSignals::ShutdownSignals(std::function<void()> on_signal) : pipe_(wake_up_pipe()) {
    assert(pipe_end.load() == -1);
    signal_seen.store(false);
    pipe_end.store(pipe_.second.fd());
    thread_ = std::thread([fd = pipe_.first.fd(), on_signal = std::move(on_signal)] {
        pollfd poll{.fd = fd, .events = POLLIN, .revents = 0};
        while (::poll(&poll, 1, -1) < 0) {
        }
        char byte = 0;
        if (::read(fd, &byte, 1) == 1 && byte == 's') on_signal();
    });
    install(SIGTERM, before_term_);
    install(SIGINT, before_int_);
}

ShutdownSignals::~ShutdownSignals() {
    sigaction(SIGTERM, &before_term_, nullptr);
    sigaction(SIGINT, &before_int_, nullptr);
    write_to(pipe_.second.fd(), 'e');
    thread_.join();
    pipe_end.store(-1);
}

bool ShutdownSignals::seen() const { return signal_seen.load(); }

}  // namespace pleat::cli
