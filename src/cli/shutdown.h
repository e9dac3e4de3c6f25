#pragma once

#include <chrono>
#include <csignal>
#include <functional>
#include <thread>

#include "serve/http_socket.h"

namespace pleat::cli {

/// While it lives, the first SIGTERM or SIGINT (Ctrl-C) calls `on_signal` on a thread of its own,
/// and a later one ends the process at once. One within the grace time is taken for the same:
/// programs such as timeout and npm pass a signal on to a group that has got it itself. Where a
/// signal was ignored, as SIGINT under nohup, it stays so. One at a time.
class ShutdownSignals {
  public:
    static constexpr std::chrono::milliseconds grace{500};

    explicit ShutdownSignals(std::function<void()> on_signal);
    ~ShutdownSignals();
    ShutdownSignals(const ShutdownSignals&) = delete;
    ShutdownSignals& operator=(const ShutdownSignals&) = delete;

    bool seen() const;

  private:
    std::pair<Socket, Socket> pipe_;
    struct sigaction before_term_ {};
    struct sigaction before_int_ {};
    std::thread thread_;
};

}  // namespace pleat::cli
