#pragma once

#include <ggml-backend.h>
#include <ggml-cpp.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace pleat {

/// Runs graphs on the devices of this process. Graphs of all executors take turns: two teams of
/// threads on the same cores are many times slower than one after the other.
class Executor {
  public:
    Executor();

    /// Allocates the compute buffer for the largest graph that will come; where it is not clear
    /// which that is, for several in turn, the one with the most nodes first. Throws Error.
    void reserve(const Graph& largest);
    /// Gives a graph its memory, and takes it from the one before. Throws Error when there is none.
    void allocate(const Graph& graph);
    /// Computes the graph that was allocated last. False when the abort flag stopped it; throws
    /// Error when a device fails.
    bool compute(const Graph& graph, int n_threads);

    /// A running graph stops soon after the flag is set. The flag must outlive the executor.
    void stop_by(const std::atomic<bool>& flag);

    uint64_t buffer_bytes() const;

  private:
    void make_scheduler(const Graph& largest);

    std::vector<ggml_backend_ptr> backends_;
    ggml_backend_sched_ptr scheduler_;
};

}  // namespace pleat
