#pragma once

#include <csignal>
#include <initializer_list>
#include <vector>

#include "engine/context.h"

namespace pleat::cli {

/// While it lives, the first Ctrl-C (SIGINT) asks for a stop and the second one ends the process as
/// usual. A signal that was ignored, as SIGHUP is under nohup, stays so. One guard at a time.
class InterruptGuard {
  public:
    /// Cancels what the context computes.
    explicit InterruptGuard(Context& context);
    /// Only remembers it, for long work that asks from time to time; SIGTERM and SIGHUP, too.
    InterruptGuard();
    ~InterruptGuard();
    InterruptGuard(const InterruptGuard&) = delete;
    InterruptGuard& operator=(const InterruptGuard&) = delete;

    bool interrupted() const;

  private:
    InterruptGuard(Context* context, std::initializer_list<int> signals);

    struct Replaced {
        int signal = 0;
        struct sigaction before {};
    };
    std::vector<Replaced> replaced_;
};

/// What a shell expects of a program that Ctrl-C ended.
inline constexpr int interrupted_status = 130;

}  // namespace pleat::cli
