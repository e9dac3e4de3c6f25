#include "cli/shutdown.h"

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cassert>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <utility>

namespace pleat::cli {
namespace {

// A signal handler reaches nothing but globals.
std::atomic<int> pipe_end = -1;
std::atomic<int64_t> first_signal_ms = 0;  ///< when it came; 0: not yet
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<int64_t>::is_always_lock_free);

int64_t milliseconds_now() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);  // of the few calls that a handler may make
    return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000 + 1;
}

void write_to(int fd, char byte) {
    const int before = errno;
    [[maybe_unused]] const ssize_t n = ::write(fd, &byte, 1);
    errno = before;
}

void on_shutdown_signal(int signal) {
    const int64_t now = milliseconds_now();
    int64_t first = 0;
    if (first_signal_ms.compare_exchange_strong(first, now)) {
        write_to(pipe_end.load(), 's');
    } else if (now - first > ShutdownSignals::grace.count()) {
        ::_exit(128 + signal);
    }
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
    first_signal_ms.store(0);
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

bool ShutdownSignals::seen() const { return first_signal_ms.load() != 0; }

}  // namespace pleat::cli
