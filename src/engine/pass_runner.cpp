#include "engine/pass_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "cache/memory_check.h"
#include "plan/cost.h"
#include "plan/spec.h"

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

bool alike(const LayerShape& a, const LayerShape& b) {
    const auto of_cache = [](const LayerShape& l) {
        return std::tuple(l.role, l.n_head_kv, l.head_dim_k, l.head_dim_v, l.n_conv_state,
                          l.n_delta_state);
    };
    return of_cache(a) == of_cache(b);
}

/// By layer: the first one that is alike.
std::vector<int32_t> first_alike(const ModelShape& shape) {
    std::vector<int32_t> first;
    for (const LayerShape& layer : shape.layers) {
        const auto found = std::ranges::find_if(
            shape.layers, [&](const LayerShape& other) { return alike(layer, other); });
        first.push_back(static_cast<int32_t>(found - shape.layers.begin()));
    }
    return first;
}

LayerPlan distinct_layers(const Model& model) {
    if (!PassRunner::takes(model)) {
        fail(
            "layers of this model read the K/V of others or bring embeddings of their own: its "
            "passes cannot run apart");
    }
    const std::vector<int32_t> first = first_alike(model.shape());
    std::string path;
    for (size_t i = 0; i < first.size(); ++i) {
        if (first[i] != static_cast<int32_t>(i)) continue;
        path += fmt::format("{}{}", path.empty() ? "layers:" : ",", i);
    }
    return LayerPlan::resolve(parse_spec(path), model.shape());
}

}  // namespace

bool PassRunner::takes(const Model& model) {
    const auto reads_others = [](const LayerShape& l) {
        return l.role == Role::shared_kv_attention;
    };
    return model.hparams().n_embd_per_layer == 0 &&
           std::ranges::none_of(model.shape().layers, reads_others);
}

uint64_t PassRunner::cache_bytes(const Model& model, const ContextSettings& settings) {
    return plan_cost(distinct_layers(model), model.shape(), completed(settings).cache)
        .cache_bytes();
}

PassRunner::PassRunner(std::shared_ptr<Model> model, ContextSettings settings, uint32_t n_ctx)
    : model_(std::move(model)),
      settings_(completed(settings)),
      distinct_(distinct_layers(*model_)),
      n_tokens_(settings_.cache.n_ctx),
      full_((check_cache_memory(distinct_, model_->shape(), settings_.cache), distinct_),
            model_->shape(), settings_.cache, CacheKind::full),
      window_(distinct_, model_->shape(), settings_.cache, CacheKind::window),
      states_(distinct_, model_->shape(), settings_.cache) {
    const std::vector<int32_t> first = first_alike(model_->shape());
    for (const int32_t layer : first) {
        const auto pass = std::ranges::find(distinct_, layer, &Pass::layer);
        slots_.push_back(pass->slot);
    }
    model_->load(LayerPlan::resolve({}, model_->shape()));
    rope_factors_ = rope_factors(*model_, std::max(n_tokens_, n_ctx));
    const Ubatch all = whole_sequences(n_seq(), n_tokens_);
    full_placement_ = *full_.place(all);
    window_placement_ = *window_.place(all);
    layouts_.resize(n_seq() + 1);
    executor_.reserve(build(distinct_[0], false, layout(n_seq()).shape));
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
    own.slot = slot_of(pass.layer);
    return GraphBuilder(*model_, distinct_, caches(), rope_factors_, shape, 1)
        .build_pass(own, last);
}

void PassRunner::embed(std::span<const std::span<const int32_t>> tokens,
                       std::span<const std::span<float>> residuals) {
    const Layout& all = layout(tokens.size());
    const Graph graph =
        GraphBuilder(*model_, distinct_, caches(), rope_factors_, all.shape, 1).build_embedding();
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
