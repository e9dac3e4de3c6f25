#include "engine/inputs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <vector>

namespace pleat {
namespace {

template <typename T>
void set(ggml_tensor* tensor, std::span<const T> values) {
    // An input that no node uses has no memory: a plan may run without attention at all.
    if (tensor == nullptr || tensor->buffer == nullptr || values.empty()) return;
    ggml_backend_tensor_set(tensor, values.data(), 0, values.size_bytes());
}

template <typename T>
void set(ggml_tensor* tensor, const std::vector<T>& values) {
    set(tensor, std::span(values));
}

/// Text has the same position in time, height and width; the fourth is 0.
std::vector<int32_t> all_positions(const ggml_tensor* input, std::span<const int32_t> positions) {
    const size_t n = positions.size();
    const auto n_runs = static_cast<size_t>(input->ne[0]) / n;
    std::vector<int32_t> all(positions.begin(), positions.end());
    if (n_runs == 1) return all;
    for (size_t run = 1; run + 1 < n_runs; ++run) {
        all.insert(all.end(), positions.begin(), positions.end());
    }
    all.resize(n_runs * n);
    return all;
}

/// Sylvester's construction, scaled to be orthonormal.
std::vector<float> make_hadamard(uint32_t n) {
    std::vector<float> matrix(static_cast<size_t>(n) * n);
    matrix[0] = static_cast<float>(1.0 / std::sqrt(static_cast<float>(n)));
    for (uint32_t size = 1; size < n; size *= 2) {
        for (uint32_t row = 0; row < size; ++row) {
            for (uint32_t column = 0; column < size; ++column) {
                const float value = matrix[row * n + column];
                matrix[(row + size) * n + column] = value;
                matrix[row * n + column + size] = value;
                matrix[(row + size) * n + column + size] = -value;
            }
        }
    }
    return matrix;
}

const std::vector<float>& hadamard(uint32_t n) {
    thread_local std::map<uint32_t, std::vector<float>> made;
    const auto [entry, is_new] = made.try_emplace(n);
    if (is_new) entry->second = make_hadamard(n);
    return entry->second;
}

}  // namespace

void set_inputs(const Graph& graph, const Ubatch& ubatch) {
    set(graph.tokens, ubatch.tokens);
    set(graph.positions, all_positions(graph.positions, ubatch.positions));
    set(graph.output_rows, ubatch.output_rows);
    if (graph.state_rows == nullptr) return;
    std::vector<int32_t> rows;
    for (uint32_t i = 0; i < ubatch.n_seqs; ++i) rows.push_back(ubatch.sequence(i));
    set(graph.state_rows, rows);
    set(graph.state_rows_written, std::vector<int64_t>(rows.begin(), rows.end()));
}

void set_rows(const RowSet& row_set, std::span<const size_t> rows,
              std::span<const int32_t> positions) {
    set(row_set.positions, all_positions(row_set.positions, positions));
    if (row_set.rows == nullptr) return;
    set(row_set.rows, std::vector<int32_t>(rows.begin(), rows.end()));
    set(row_set.rows_written, std::vector<int64_t>(rows.begin(), rows.end()));
}

KvInputValues single_token_values(const KvCache& cache, std::span<const int32_t> positions,
                                  uint32_t n_kv, uint32_t n_swa) {
    KvInputValues values;
    if (cache.empty()) return values;
    const size_t n = positions.size();
    const int64_t n_cells = cache.n_cells();
    const int64_t n_embd_v = cache.n_embd_v();
    const auto window = static_cast<int32_t>(n_swa);
    if (cache.flash_attention()) {
        values.mask16.assign(n * n_kv, ggml_fp32_to_fp16(-INFINITY));
    } else {
        values.mask32.assign(n * n_kv, -INFINITY);
    }
    const ggml_fp16_t zero = ggml_fp32_to_fp16(0.0F);
    for (size_t i = 0; i < n; ++i) {
        const auto stream = static_cast<int64_t>(i);
        values.k_cells.push_back(stream * n_cells + positions[i]);
        if (!cache.flash_attention()) {
            for (int64_t channel = 0; channel < n_embd_v; ++channel) {
                values.v_cells.push_back((stream * n_embd_v + channel) * n_cells + positions[i]);
            }
        }
        const int32_t first = n_swa == 0 ? 0 : std::max(0, positions[i] - window + 1);
        for (int32_t p = first; p <= positions[i]; ++p) {
            const size_t at = i * n_kv + static_cast<size_t>(p);
            if (cache.flash_attention()) {
                values.mask16[at] = zero;
            } else {
                values.mask32[at] = 0.0F;
            }
        }
    }
    return values;
}

KvInputValues kv_input_values(const KvCache& cache, const Ubatch& ubatch,
                              const Placement& placement, bool apart) {
    KvInputValues values;
    if (cache.empty()) return values;
    const uint32_t n_tokens = ubatch.n_tokens();
    const uint32_t n_stream_tokens = ubatch.n_stream_tokens();
    const int64_t n_cells = cache.n_cells();
    const int64_t n_embd_v = cache.n_embd_v();
    const auto n_kv_of = [&](uint32_t stream) {
        return apart ? placement.n_kv_each[stream] : placement.n_kv;
    };
    size_t n_mask = 0;
    for (uint32_t s = 0; s < ubatch.n_streams; ++s) n_mask += size_t{n_kv_of(s)} * n_stream_tokens;
    const ggml_fp16_t zero = ggml_fp32_to_fp16(0.0F);
    if (cache.flash_attention()) {
        values.mask16.assign(n_mask, ggml_fp32_to_fp16(-INFINITY));
    } else {
        values.mask32.assign(n_mask, -INFINITY);
        values.v_cells.resize(static_cast<size_t>(n_tokens * n_embd_v));
    }
    size_t row = 0;
    for (uint32_t i = 0; i < n_tokens; ++i) {
        const int64_t stream = ubatch.stream(i / n_stream_tokens);
        const uint32_t n_kv = n_kv_of(i / n_stream_tokens);
        const int64_t cell = placement.cells[i];
        values.k_cells.push_back(stream * n_cells + cell);
        if (!cache.flash_attention()) {
            for (int64_t channel = 0; channel < n_embd_v; ++channel) {
                values.v_cells[static_cast<size_t>(i * n_embd_v + channel)] =
                    (stream * n_embd_v + channel) * n_cells + cell;
            }
        }
        const Cells& cells = cache.stream(static_cast<uint32_t>(stream));
        for (uint32_t j = 0; j < n_kv; ++j) {
            if (!cells.visible(j, ubatch.sequences[i], ubatch.positions[i])) continue;
            if (cache.flash_attention()) {
                values.mask16[row + j] = zero;
            } else {
                values.mask32[row + j] = 0.0F;
            }
        }
        row += n_kv;
    }
    return values;
}

void set_kv_inputs(const KvInputs& inputs, const KvCache& cache, const KvInputValues& values) {
    if (cache.empty()) return;
    set(inputs.k_cells, values.k_cells);
    set(inputs.v_cells, values.v_cells.empty() ? values.k_cells : values.v_cells);
    set(inputs.mask, values.mask16);
    set(inputs.mask, values.mask32);
    size_t first = 0;
    for (const KvView& view : inputs.apart) {
        const auto n = static_cast<size_t>(ggml_nelements(view.mask));
        if (cache.flash_attention()) {
            set(view.mask, std::span(values.mask16).subspan(first, n));
        } else {
            set(view.mask, std::span(values.mask32).subspan(first, n));
        }
        first += n;
    }
    if (inputs.rotation_k != nullptr) set(inputs.rotation_k, hadamard(cache.rotation_k()));
    if (inputs.rotation_v != nullptr) set(inputs.rotation_v, hadamard(cache.rotation_v()));
}

}  // namespace pleat
