#include "lab/similarity.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "engine/pass_runner.h"

namespace pleat {
namespace {

using Streams = std::vector<std::vector<float>>;

std::vector<std::span<float>> writable(Streams& streams, size_t n) {
    return {streams.begin(), streams.begin() + static_cast<std::ptrdiff_t>(n)};
}

std::vector<std::span<const float>> readable(const Streams& streams, size_t n) {
    return {streams.begin(), streams.begin() + static_cast<std::ptrdiff_t>(n)};
}

}  // namespace

double sum_of_cosines(std::span<const float> before, std::span<const float> after, size_t n_embd) {
    double sum = 0.0;
    for (size_t first = 0; first < before.size(); first += n_embd) {
        double product = 0.0;
        double square_before = 0.0;
        double square_after = 0.0;
        for (size_t i = first; i < first + n_embd; ++i) {
            const double x = before[i];
            const double y = after[i];
            product += x * y;
            square_before += x * x;
            square_after += y * y;
        }
        const double norm = std::sqrt(square_before) * std::sqrt(square_after);
        if (norm > 0) sum += product / norm;
    }
    return sum;
}

bool has_separate_sublayers(const Model& model) {
    const auto& layers = model.shape().layers;
    return model.architecture().after == nullptr &&
           std::ranges::none_of(
               layers, [](const LayerShape& l) { return l.role == Role::shared_kv_attention; });
}

std::vector<LayerSimilarity> layer_similarity(
    const std::shared_ptr<Model>& model, const ContextSettings& settings, uint32_t rows_per_batch,
    std::span<const std::vector<int32_t>> sequences,
    const std::function<bool(double fraction)>& progress) {
    if (!has_separate_sublayers(*model)) fail("the sub-layers of this model cannot run apart");
    if (sequences.empty()) fail("no text to compare residual streams on");
    const size_t n_tokens = sequences.front().size();
    ContextSettings own = settings;
    own.cache.n_ctx = static_cast<uint32_t>(n_tokens);
    const auto most = static_cast<uint32_t>(std::min<size_t>(sequences.size(), max_sequences));
    own.cache.n_seq = std::clamp<uint32_t>(rows_per_batch / own.cache.n_ctx, 1, most);
    PassRunner runner(model, own);

    const auto n_layer = static_cast<size_t>(model->shape().n_layer);
    const size_t n_embd = model->hparams().n_embd;
    std::vector<LayerSimilarity> sums(n_layer);
    Streams before(runner.n_seq(), std::vector<float>(runner.residual_size()));
    Streams after = before;
    // Runs one sub-layer over all streams; `before` is then what it left.
    const auto run = [&](const Pass& pass, size_t n) {
        runner.run(pass, readable(before, n), writable(after, n));
        double sum = 0.0;
        for (size_t s = 0; s < n; ++s) sum += sum_of_cosines(before[s], after[s], n_embd);
        std::swap(before, after);
        return sum;
    };
    for (size_t first = 0; first < sequences.size(); first += runner.n_seq()) {
        const size_t n = std::min<size_t>(runner.n_seq(), sequences.size() - first);
        const std::vector<std::span<const int32_t>> tokens(
            sequences.begin() + static_cast<std::ptrdiff_t>(first),
            sequences.begin() + static_cast<std::ptrdiff_t>(first + n));
        for (const auto& sequence : tokens) {
            if (sequence.size() == n_tokens) continue;
            fail("a sequence of {} tokens among sequences of {}", sequence.size(), n_tokens);
        }
        runner.embed(tokens, writable(before, n));
        for (size_t l = 0; l < n_layer; ++l) {
            const auto layer = static_cast<int32_t>(l);
            sums[l].attention += run({.layer = layer, .ffn = false}, n);
            sums[l].ffn += run({.layer = layer, .attention = false}, n);
            const double done = static_cast<double>(first) +
                                static_cast<double>(n * (l + 1)) / static_cast<double>(n_layer);
            if (progress && !progress(done / static_cast<double>(sequences.size()))) return {};
        }
    }
    const auto total = static_cast<double>(sequences.size() * n_tokens);
    for (LayerSimilarity& it : sums) it = {it.attention / total, it.ffn / total};
    return sums;
}

}  // namespace pleat
