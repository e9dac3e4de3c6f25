#include "engine/pass_runner.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "cache/memory_check.h"

namespace pleat {
namespace {

constexpr uint64_t max_rows = uint64_t{1} << 20U;

ContextSettings completed(ContextSettings settings) {
    CacheSettings& cache = settings.cache;
    cache.kv_unified = false;
    if (cache.n_ctx == 0 || cache.n_seq == 0 || cache.n_seq > max_sequences ||
        uint64_t{cache.n_ctx} * cache.n_seq > max_rows) {
        fail("{} sequences of {} tokens cannot run in one piece, at most {} tokens can",
             cache.n_seq, cache.n_ctx, max_rows);
    }
    // A sequence runs in one piece.
    cache.n_ubatch = cache.n_ctx * cache.n_seq;
    cache.flash_attention = settings.flash_attention != FlashAttention::off;
    return settings;
}

/// `n` whole sequences, one after another.
Ubatch whole_sequences(uint32_t n, uint32_t n_tokens) {
    Ubatch ubatch;
    ubatch.n_streams = n;
    ubatch.n_seqs = n;
    for (uint32_t s = 0; s < n; ++s) {
        for (uint32_t i = 0; i < n_tokens; ++i) {
            ubatch.tokens.push_back(0);
            ubatch.positions.push_back(static_cast<int32_t>(i));
            ubatch.sequences.push_back(static_cast<int32_t>(s));
        }
    }
    return ubatch;
}

void check_owners(const ModelShape& shape) {
    for (size_t i = 0; i < shape.layers.size(); ++i) {
        if (shape.layers[i].role != Role::shared_kv_attention) continue;
        fail("layer {} reads the K/V of layer {}: passes of this model cannot run apart", i,
             shape.layers[i].kv_owner);
    }
}

}  // namespace

PassRunner::PassRunner(std::shared_ptr<Model> model, ContextSettings settings)
    : model_(std::move(model)),
      settings_(completed(settings)),
      identity_(LayerPlan::resolve({}, model_->shape())),
      n_tokens_(settings_.cache.n_ctx),
      full_((check_cache_memory(identity_, model_->shape(), settings_.cache), identity_),
            model_->shape(), settings_.cache, CacheKind::full),
      window_(identity_, model_->shape(), settings_.cache, CacheKind::window),
      states_(identity_, model_->shape(), settings_.cache) {
    check_owners(model_->shape());
    model_->load(identity_);
    rope_factors_ = rope_factors(*model_, n_tokens_);
    const Ubatch all = whole_sequences(n_seq(), n_tokens_);
    full_placement_ = *full_.place(all);
    window_placement_ = *window_.place(all);
    layouts_.resize(n_seq() + 1);
    executor_.reserve(build(identity_[0], false, layout(n_seq()).shape));
}

const PassRunner::Layout& PassRunner::layout(size_t n_seq) {
    std::unique_ptr<Layout>& made = layouts_.at(n_seq);
    if (made) return *made;
    made = std::make_unique<Layout>();
    const auto n = static_cast<uint32_t>(n_seq);
    made->ubatch = whole_sequences(n, n_tokens_);
    const auto first = [&](const Placement& all) {
        Placement part{.cells = {}, .n_kv = all.n_kv};
        const size_t n_cells = std::min<size_t>(all.cells.size(), n_seq * n_tokens_);
        part.cells.assign(all.cells.begin(),
                          all.cells.begin() + static_cast<std::ptrdiff_t>(n_cells));
        return part;
    };
    made->full = kv_input_values(full_, made->ubatch, first(full_placement_));
    made->window = kv_input_values(window_, made->ubatch, first(window_placement_));
    made->shape = {.n_tokens = n * n_tokens_,
                   .n_outputs = 0,
                   .n_streams = n,
                   .first_stream = 0,
                   .n_kv_full = full_.empty() ? 0 : full_placement_.n_kv,
                   .n_kv_window = window_.empty() ? 0 : window_placement_.n_kv,
                   .n_seqs = n,
                   .first_state = 0};
    return *made;
}

Graph PassRunner::build(const Pass& pass, bool last, const GraphShape& shape) const {
    Pass own = pass;
    own.slot = identity_[static_cast<size_t>(pass.layer)].slot;
    return GraphBuilder(*model_, identity_, caches(), rope_factors_, shape, 1)
        .build_pass(own, last);
}

void PassRunner::embed(std::span<const std::span<const int32_t>> tokens,
                       std::span<const std::span<float>> residuals) {
    const Layout& all = layout(tokens.size());
    const Graph graph =
        GraphBuilder(*model_, identity_, caches(), rope_factors_, all.shape, 1).build_embedding();
    executor_.allocate(graph);
    for (size_t s = 0; s < tokens.size(); ++s) {
        const size_t bytes = tokens[s].size_bytes();
        ggml_backend_tensor_set(graph.tokens, tokens[s].data(), s * bytes, bytes);
    }
    executor_.compute(graph, settings_.n_threads_batch);
    for (size_t s = 0; s < residuals.size(); ++s) {
        const size_t bytes = residuals[s].size_bytes();
        ggml_backend_tensor_get(graph.residual, residuals[s].data(), s * bytes, bytes);
    }
}

void PassRunner::compute(const Graph& graph, const Layout& layout,
                         std::span<const std::span<const float>> in,
                         const std::vector<int32_t>& output_rows) {
    executor_.allocate(graph);
    // The ubatch lacks tokens: what comes in is the stream.
    Ubatch ubatch = layout.ubatch;
    ubatch.output_rows = output_rows;
    set_inputs(graph, ubatch);
    set_kv_inputs(graph.full, full_, layout.full);
    set_kv_inputs(graph.window, window_, layout.window);
    for (size_t s = 0; s < in.size(); ++s) {
        const size_t bytes = in[s].size_bytes();
        ggml_backend_tensor_set(graph.residual_in, in[s].data(), s * bytes, bytes);
    }
    states_.clear();  // every sequence begins
    executor_.compute(graph, settings_.n_threads_batch);
}

void PassRunner::run(const Pass& pass, std::span<const std::span<const float>> in,
                     std::span<const std::span<float>> out) {
    const Layout& all = layout(in.size());
    const Graph graph = build(pass, false, all.shape);
    compute(graph, all, in, {});
    for (size_t s = 0; s < out.size(); ++s) {
        const size_t bytes = out[s].size_bytes();
        ggml_backend_tensor_get(graph.residual, out[s].data(), s * bytes, bytes);
    }
}

void PassRunner::finish(const Pass& pass, std::span<const std::span<const float>> in,
                        std::span<const std::span<const int32_t>> rows, const OnLogits& on_logits) {
    const Layout& all = layout(in.size());
    std::vector<int32_t> output_rows;
    for (size_t s = 0; s < in.size(); ++s) {
        for (const int32_t row : rows[s]) {
            output_rows.push_back(static_cast<int32_t>(s * n_tokens_) + row);
        }
    }
    GraphShape shape = all.shape;
    shape.n_outputs = static_cast<uint32_t>(output_rows.size());
    const Graph graph = build(pass, true, shape);
    compute(graph, all, in, output_rows);
    const size_t n_vocab = model_->hparams().n_vocab;
    size_t first = 0;
    for (size_t s = 0; s < in.size(); ++s) {
        logits_.resize(rows[s].size() * n_vocab);
        ggml_backend_tensor_get(graph.logits, logits_.data(), first * n_vocab * sizeof(float),
                                logits_.size() * sizeof(float));
        first += rows[s].size();
        on_logits(s, logits_);
    }
}

}  // namespace pleat
