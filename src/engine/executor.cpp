#include "engine/executor.h"

#include <mutex>

#include "base/error.h"
#include "model/backend.h"

namespace pleat {
namespace {

std::mutex& compute_mutex() {
    static std::mutex mutex;
    return mutex;
}

}  // namespace

Executor::Executor() : backends_(make_backends()) {}

void Executor::reserve(const Graph& largest) {
    if (!scheduler_) make_scheduler(largest);
    if (!ggml_backend_sched_reserve(scheduler_.get(), largest.nodes)) {
        fail("cannot allocate the compute buffer for {} tokens", largest.shape.n_tokens);
    }
}

void Executor::make_scheduler(const Graph& largest) {
    std::vector<ggml_backend_t> backends;
    std::vector<ggml_backend_buffer_type_t> types;
    for (const ggml_backend_ptr& backend : backends_) {
        backends.push_back(backend.get());
        types.push_back(ggml_backend_get_default_buffer_type(backend.get()));
    }
    scheduler_.reset(
        ggml_backend_sched_new(backends.data(), types.data(), static_cast<int>(backends.size()),
                               static_cast<size_t>(ggml_graph_size(largest.nodes)), false, true));
    if (!scheduler_) fail("cannot make a scheduler for {} tokens", largest.shape.n_tokens);
}

void Executor::allocate(const Graph& graph) {
    ggml_backend_sched_reset(scheduler_.get());
    if (ggml_backend_sched_alloc_graph(scheduler_.get(), graph.nodes)) return;
    fail("cannot allocate the compute buffer for {} tokens with {} outputs", graph.shape.n_tokens,
         graph.shape.n_outputs);
}

bool Executor::compute(const Graph& graph, int n_threads) {
    for (const ggml_backend_ptr& backend : backends_) set_threads(backend.get(), n_threads);
    const std::lock_guard lock(compute_mutex());
    const ggml_status status = ggml_backend_sched_graph_compute(scheduler_.get(), graph.nodes);
    switch (status) {
        case GGML_STATUS_SUCCESS:
            return true;
        case GGML_STATUS_ABORTED:
            return false;
        case GGML_STATUS_ALLOC_FAILED:
            fail("out of memory while computing");
        case GGML_STATUS_FAILED:
            break;
    }
    fail("the backend failed to compute (status {})", static_cast<int>(status));
}

void Executor::stop_by(const std::atomic<bool>& flag) {
    for (const ggml_backend_ptr& backend : backends_) {
        set_abort_callback(
            backend.get(),
            [](void* data) {
                return static_cast<const std::atomic<bool>*>(data)->load(std::memory_order_relaxed);
            },
            const_cast<std::atomic<bool>*>(&flag));  // ggml's interface has no const
    }
}

uint64_t Executor::buffer_bytes() const {
    uint64_t bytes = 0;
    for (const ggml_backend_ptr& backend : backends_) {
        bytes += ggml_backend_sched_get_buffer_size(scheduler_.get(), backend.get());
    }
    return bytes;
}

}  // namespace pleat
