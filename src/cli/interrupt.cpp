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

InterruptGuard::InterruptGuard(Context& context) : InterruptGuard(&context, {SIGINT}) {}

InterruptGuard::InterruptGuard() : InterruptGuard(nullptr, {SIGINT, SIGTERM, SIGHUP}) {}

InterruptGuard::InterruptGuard(Context* context, std::initializer_list<int> signals) {
    assert(running.load() == nullptr);
    interrupt_seen.store(false);
    running.store(context);
    struct sigaction action {};
    action.sa_handler = on_interrupt;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
    for (const int signal : signals) {
        Replaced it{.signal = signal};
        sigaction(signal, nullptr, &it.before);
        if (it.before.sa_handler == SIG_IGN) continue;
        sigaction(signal, &action, nullptr);
        replaced_.push_back(it);
    }
}

InterruptGuard::~InterruptGuard() {
    for (const Replaced& it : replaced_) sigaction(it.signal, &it.before, nullptr);
    running.store(nullptr);
}

bool InterruptGuard::interrupted() const { return interrupt_seen.load(); }

}  // namespace pleat::cli
