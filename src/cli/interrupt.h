#pragma once

#include <csignal>

#include "engine/context.h"

namespace pleat::cli {

/// While it lives, the first Ctrl-C (SIGINT) asks a context to stop and the second one ends the
/// process as usual. Where SIGINT was ignored, as under nohup, it stays so. One at a time.
class InterruptGuard {
  public:
    explicit InterruptGuard(Context& context);
    /// Only remembers it: for work that asks from time to time.
    InterruptGuard();
    ~InterruptGuard();
    InterruptGuard(const InterruptGuard&) = delete;
    InterruptGuard& operator=(const InterruptGuard&) = delete;

    bool interrupted() const;

  private:
    void install(Context* context);

    struct sigaction before_ {};
};

/// What a shell expects of a program that Ctrl-C ended.
inline constexpr int interrupted_status = 130;

}  // namespace pleat::cli
