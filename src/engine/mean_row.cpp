#include "engine/mean_row.h"

#include <ggml-cpp.h>

#include "base/error.h"
#include "engine/executor.h"

namespace pleat {

std::vector<float> mean_row(std::span<const std::vector<float>> rows) {
    const auto n = static_cast<int64_t>(rows.size());
    const auto width = static_cast<int64_t>(rows.front().size());
    Graph graph;
    graph.context.reset(
        ggml_init({.mem_size = 16 * ggml_tensor_overhead() + ggml_graph_overhead_custom(16, false),
                   .mem_buffer = nullptr,
                   .no_alloc = true}));
    if (!graph.context) fail("out of memory for a mean of {} rows", n);
    ggml_context* const c = graph.context.get();
    ggml_tensor* const all = ggml_new_tensor_2d(c, GGML_TYPE_F32, width, n);
    ggml_tensor* const share = ggml_new_tensor_2d(c, GGML_TYPE_F32, n, 1);
    ggml_set_input(all);
    ggml_set_input(share);
    ggml_tensor* const mean = ggml_mul_mat(c, ggml_cont(c, ggml_transpose(c, all)), share);
    ggml_set_output(mean);
    graph.nodes = ggml_new_graph_custom(c, 16, false);
    ggml_build_forward_expand(graph.nodes, mean);

    Executor executor;
    executor.reserve(graph);
    executor.allocate(graph);
    for (size_t i = 0; i < rows.size(); ++i) {
        const size_t bytes = rows[i].size() * sizeof(float);
        ggml_backend_tensor_set(all, rows[i].data(), i * bytes, bytes);
    }
    const std::vector<float> shares(rows.size(), 1.0F / static_cast<float>(n));
    ggml_backend_tensor_set(share, shares.data(), 0, shares.size() * sizeof(float));
    executor.compute(graph, 1);
    std::vector<float> result(static_cast<size_t>(width));
    ggml_backend_tensor_get(mean, result.data(), 0, result.size() * sizeof(float));
    return result;
}

}  // namespace pleat
