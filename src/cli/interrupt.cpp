#include "cli/interrupt.h"

#include <atomic>
#include <cassert>

namespace pleat::cli {
namespace {

// A signal handler reaches nothing but globals.
std::atomic<Context*> running = nullptr;
std::atomic<bool> interrupt_seen = false;
static_assert(std::atomic<Context*>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

void on_interrupt(int) {
    interrupt_seen.store(true);
    if (Context* const context = running.load()) context->cancel();
}

}  // namespace

InterruptGuard::InterruptGuard(Context& context) { install(&context); }

InterruptGuard::InterruptGuard() { install(nullptr); }

void InterruptGuard::install(Context* context) {
    assert(running.load() == nullptr);
    interrupt_seen.store(false);
    running.store(context);
    sigaction(SIGINT, nullptr, &before_);
    if (before_.sa_handler == SIG_IGN) return;
    struct sigaction action {};
    action.sa_handler = on_interrupt;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, nullptr);
}

InterruptGuard::~InterruptGuard() {
    sigaction(SIGINT, &before_, nullptr);
    running.store(nullptr);
}

bool InterruptGuard::interrupted() const { return interrupt_seen.load(); }

}  // namespace pleat::cli
