#include "text/deep_stack.h"

#include <pthread.h>

#include <exception>

#include "base/error.h"

namespace pleat {
namespace {

struct Job {
    const std::function<void()>* work;
    std::exception_ptr failure;
};

void* run(void* argument) {
    Job& job = *static_cast<Job*>(argument);
    try {
        (*job.work)();
    } catch (...) {
        job.failure = std::current_exception();
    }
    return nullptr;
}

}  // namespace

void on_deep_stack(size_t bytes, const std::function<void()>& work) {
    Job job{&work, nullptr};
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_t thread{};
    // std::thread has no way to ask for a stack size.
    const bool started = pthread_attr_setstacksize(&attributes, bytes) == 0 &&
                         pthread_create(&thread, &attributes, run, &job) == 0;
    pthread_attr_destroy(&attributes);
    if (!started) {
        fail("cannot start a thread with a stack of {} MiB", bytes >> 20);
    }
    pthread_join(thread, nullptr);
    if (job.failure) std::rethrow_exception(job.failure);
}

}  // namespace pleat
