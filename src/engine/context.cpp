#include "engine/context.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "cache/memory_check.h"
#include "engine/inputs.h"
#include "model/backend.h"

namespace pleat {
namespace {

ContextSettings completed(ContextSettings settings, const Model& model) {
    CacheSettings& cache = settings.cache;
    if (cache.n_ctx == 0) cache.n_ctx = model.hparams().n_ctx_train;
    if (cache.n_seq == 0 || cache.n_seq > max_sequences) {
        fail("{} sequences asked for; a context holds 1 to {}", cache.n_seq, max_sequences);
    }
    if (settings.n_batch == 0) fail("n_batch is 0, expected at least 1");
    if (cache.n_ubatch == 0) fail("n_ubatch is 0, expected at least 1");
    if (settings.n_threads < 1 || settings.n_threads_batch < 1) {
        fail("{} and {} threads asked for, expected at least 1", settings.n_threads,
             settings.n_threads_batch);
    }
    // What stock does: no batch exceeds the context, no ubatch the batch.
    settings.n_batch = static_cast<uint32_t>(
        std::min(uint64_t{settings.n_batch}, uint64_t{cache.n_cells()} * cache.n_stream()));
    cache.n_ubatch = std::min(cache.n_ubatch, settings.n_batch);
    if (settings.flash_attention == FlashAttention::automatic) {
        settings.flash_attention = FlashAttention::on;  // the CPU has the kernel
    }
    cache.flash_attention = settings.flash_attention == FlashAttention::on;
    if (!cache.flash_attention && cache.type_v.quantized()) {
        fail("a quantised V cache ({}) needs flash attention: use -fa on, or -ctv f16",
             cache.type_v.name);
    }
    return settings;
}

}  // namespace

Context::Context(std::shared_ptr<Model> model, LayerPlan plan, ContextSettings settings,
                 const LoadProgress& progress)
    : model_(std::move(model)),
      plan_(std::move(plan)),
      settings_(completed(settings, *model_)),
      full_((check_cache_memory(plan_, model_->shape(), settings_.cache), plan_), model_->shape(),
            settings_.cache, CacheKind::full),
      window_(plan_, model_->shape(), settings_.cache, CacheKind::window),
      states_(plan_, model_->shape(), settings_.cache) {
    model_->load(plan_, progress);

    rope_factors_ = rope_factors(*model_, settings_.cache.n_ctx);
    // Recurrent layers take all sequences of a ubatch in step.
    split_ = full_.n_stream() > 1          ? settings_.attend_apart ? UbatchSplit::equal_streams
                                                                    : UbatchSplit::equal_consecutive
             : model_->hparams().delta_net ? UbatchSplit::equal
                                           : UbatchSplit::runs;
    // A graph with states runs to its end: half of the layers one ubatch ahead is no place to go on
    // from.
    if (states_.empty()) executor_.stop_by(cancelled_);
    reserve();
}

Context::~Context() = default;

void Context::reserve() {
    // The largest shape once, so that decoding never allocates; the outputs grow when asked for.
    const uint32_t n_ubatch = settings_.cache.n_ubatch;
    const StreamShape all_cells{.stream = 0,
                                .n_kv_full = full_.empty() ? 0 : full_.n_cells(),
                                .n_kv_window = window_.empty() ? 0 : window_.n_cells()};
    const auto reserve_for = [&](uint32_t n_tokens, uint32_t n_streams) {
        GraphShape shape{.n_tokens = n_tokens,
                         .n_outputs = n_streams,
                         .n_streams = n_streams,
                         .first_stream = 0,
                         .n_kv_full = all_cells.n_kv_full,
                         .n_kv_window = all_cells.n_kv_window,
                         .n_seqs = n_streams,
                         .first_state = n_streams > 1 ? -1 : 0};
        if (settings_.attend_apart) shape.apart.assign(n_streams, all_cells);
        executor_.reserve(GraphBuilder(*model_, plan_, caches(), rope_factors_, shape).build());
    };
    // An equal split lets one sequence too many in.
    const uint32_t n_together = std::min(full_.n_stream(), n_ubatch + 1);
    if (settings_.attend_apart && n_together > 1) reserve_for(n_together, n_together);
    reserve_for(n_ubatch, 1);
}

void Context::check_sequence(int32_t sequence) const {
    if (sequence >= 0 && static_cast<uint32_t>(sequence) < settings_.cache.n_seq) return;
    fail("sequence {} does not exist; this context has {}, so 0 <= sequence < {}", sequence,
         settings_.cache.n_seq, settings_.cache.n_seq);
}

void Context::check(std::span<const BatchToken> batch) const {
    if (batch.empty()) fail("an empty batch was given to decode");
    std::vector<int32_t> next(settings_.cache.n_seq, -1);
    for (const BatchToken& t : batch) {
        if (t.token < 0 || static_cast<uint32_t>(t.token) >= n_vocab()) {
            fail("token {} is not in the vocabulary; this model has {} tokens, so 0 <= token < {}",
                 t.token, n_vocab(), n_vocab());
        }
        check_sequence(t.sequence);
        int32_t& expected = next[static_cast<size_t>(t.sequence)];
        if (expected < 0) expected = next_position(t.sequence);
        if (t.position != expected) {
            fail("position {} given for sequence {}, expected {}: positions follow each other",
                 t.position, t.sequence, expected);
        }
        ++expected;
    }
}

DecodeStatus Context::decode(int32_t sequence, std::span<const int32_t> tokens, bool all_outputs) {
    Batch batch;
    batch.reserve(tokens.size());
    int32_t position = next_position(sequence);
    for (size_t i = 0; i < tokens.size(); ++i) {
        batch.push_back({.token = tokens[i],
                         .position = position++,
                         .sequence = sequence,
                         .output = all_outputs || i + 1 == tokens.size()});
    }
    return decode(batch);
}

DecodeStatus Context::decode(std::span<const BatchToken> batch, Outputs outputs) {
    check(batch);
    cancelled_ = false;
    n_outputs_ = 0;
    output_of_row_.assign(batch.size(), -1);
    for (size_t i = 0; i < batch.size(); ++i) {
        if (batch[i].output) output_of_row_[i] = static_cast<int32_t>(n_outputs_++);
    }
    logits_.resize(outputs == Outputs::logits ? n_outputs_ * n_vocab() : 0);
    hidden_.resize(outputs == Outputs::hidden ? n_outputs_ * n_embd() : 0);

    // Known before anything is computed, so that a batch that does not fit leaves no trace. A
    // window cache is sized so that a ubatch always finds room.
    std::vector<uint32_t> n_new(full_.n_stream());
    for (const BatchToken& t : batch) ++n_new[full_.stream_of(t.sequence)];
    if (!full_.fits(n_new)) {
        n_outputs_ = 0;
        return DecodeStatus::cache_full;
    }
    Before before = save_before(batch);
    for (size_t row = 0; row < batch.size(); row += settings_.n_batch) {
        const size_t n = std::min<size_t>(settings_.n_batch, batch.size() - row);
        const DecodeStatus status = decode_chunk(batch.subspan(row, n), row, outputs,
                                                 before.window ? &*before.window : nullptr);
        if (status == DecodeStatus::ok) continue;
        for (const BatchToken& t : batch.first(row + n)) {
            full_.remove(t.sequence, t.position, t.position + 1);
            window_.remove(t.sequence, t.position, t.position + 1);
        }
        if (before.window) window_.go_back(*before.window);
        for (const auto& [sequence, state] : before.states) states_.restore(sequence, state);
        n_outputs_ = 0;
        return status;
    }
    return DecodeStatus::ok;
}

/// A batch of a single ubatch needs nothing: with states it always ends, and in a window cache it
/// takes only cells that no later token sees.
Context::Before Context::save_before(std::span<const BatchToken> batch) const {
    Before before;
    if ((states_.empty() && window_.empty()) || batch.size() == 1) return before;
    if (split_ubatches(batch, settings_.cache.n_ubatch, split_).size() == 1) return before;
    if (!window_.empty()) before.window = window_.begin_undo();
    if (states_.empty()) return before;
    for (const BatchToken& t : batch) {
        if (before.states.contains(t.sequence)) continue;
        before.states.emplace(t.sequence, states_.save(t.sequence));
    }
    return before;
}

/// Where the states of an equal split's sequences begin when they follow each other; else -1.
int32_t Context::first_state(const Ubatch& ubatch) const {
    if (states_.empty()) return 0;
    for (uint32_t i = 1; i < ubatch.n_seqs; ++i) {
        if (ubatch.sequence(i) != ubatch.sequence(i - 1) + 1) return -1;
    }
    return ubatch.sequence(0);
}

/// Where each stream is attended to by itself.
std::vector<StreamShape> Context::streams_apart(const Ubatch& ubatch, const Placement& full,
                                                const Placement& window) const {
    std::vector<StreamShape> streams;
    for (uint32_t i = 0; settings_.attend_apart && i < ubatch.n_streams; ++i) {
        streams.push_back({.stream = ubatch.stream(i),
                           .n_kv_full = full_.empty() ? 0 : full.n_kv_each[i],
                           .n_kv_window = window_.empty() ? 0 : window.n_kv_each[i]});
    }
    return streams;
}

int Context::n_threads(const Ubatch& ubatch) const {
    const uint32_t n = settings_.attend_apart ? ubatch.n_stream_tokens() : ubatch.n_tokens();
    return n == 1 ? settings_.n_threads : settings_.n_threads_batch;
}

DecodeStatus Context::decode_chunk(std::span<const BatchToken> batch, size_t first_row,
                                   Outputs outputs, KvCache::Undo* window_undo) {
    for (const Ubatch& ubatch : split_ubatches(batch, settings_.cache.n_ubatch, split_)) {
        if (!states_.empty() && cancelled_) return DecodeStatus::cancelled;
        const auto full = full_.place(ubatch);
        if (!full) return DecodeStatus::cache_full;
        const auto window = window_.place(ubatch, window_undo);
        if (!window) return DecodeStatus::cache_full;
        const Graph& graph =
            graph_for({.n_tokens = ubatch.n_tokens(),
                       .n_outputs = static_cast<uint32_t>(ubatch.output_rows.size()),
                       .n_streams = ubatch.n_streams,
                       .first_stream = ubatch.first_stream,
                       .n_kv_full = full_.empty() ? 0 : full->n_kv,
                       .n_kv_window = window_.empty() ? 0 : window->n_kv,
                       .n_seqs = ubatch.n_seqs,
                       .first_state = first_state(ubatch),
                       .apart = streams_apart(ubatch, *full, *window),
                       .head = outputs == Outputs::logits});
        set_inputs(graph, ubatch);
        set_kv_inputs(graph.full, full_,
                      kv_input_values(full_, ubatch, *full, settings_.attend_apart));
        set_kv_inputs(graph.window, window_,
                      kv_input_values(window_, ubatch, *window, settings_.attend_apart));
        if (!executor_.compute(graph, n_threads(ubatch))) return DecodeStatus::cancelled;
        take_outputs(graph, ubatch, first_row);
    }
    return DecodeStatus::ok;
}

void Context::take_outputs(const Graph& graph, const Ubatch& ubatch, size_t first_row) {
    ggml_tensor* const from = graph.shape.head ? graph.logits : graph.hidden;
    std::vector<float>& to = graph.shape.head ? logits_ : hidden_;
    const auto width = static_cast<size_t>(from->ne[0]);
    for (size_t i = 0; i < ubatch.output_rows.size(); ++i) {
        const auto ubatch_row = static_cast<size_t>(ubatch.output_rows[i]);
        const size_t row = first_row + static_cast<size_t>(ubatch.batch_rows[ubatch_row]);
        const auto output = static_cast<size_t>(output_of_row_[row]);
        const size_t bytes = width * sizeof(float);
        ggml_backend_tensor_get(from, &to[output * width], i * bytes, bytes);
    }
}

const Graph& Context::graph_for(const GraphShape& shape) {
    if (graph_ && graph_->shape == shape) return *graph_;
    graph_.reset();
    Graph graph = GraphBuilder(*model_, plan_, caches(), rope_factors_, shape).build();
    ++n_graphs_built_;
    executor_.allocate(graph);
    // Constant inputs live in the compute buffer too, where later nodes may reuse their memory, so
    // they are set with the others before every run.
    graph_ = std::move(graph);
    return *graph_;
}

void Context::check_output(size_t output, size_t n) const {
    if (output < std::min(n, n_outputs_)) return;
    fail("output {} asked for, the last batch had {}", output, std::min(n, n_outputs_));
}

std::span<const float> Context::logits(size_t output) const {
    check_output(output, logits_.size() / n_vocab());
    return std::span(logits_).subspan(output * n_vocab(), n_vocab());
}

std::span<const float> Context::hidden(size_t output) const {
    check_output(output, hidden_.size() / n_embd());
    return std::span(hidden_).subspan(output * n_embd(), n_embd());
}

int32_t Context::next_position(int32_t sequence) const {
    check_sequence(sequence);
    return full_.stream(full_.stream_of(sequence)).max_position(sequence) + 1;
}

void Context::remove(int32_t sequence, int32_t begin, int32_t end) {
    check_sequence(sequence);
    const int32_t length = next_position(sequence);
    if (end < 0) end = INT32_MAX;
    if (begin >= length || end <= begin) return;
    const bool whole = begin <= 0 && end >= length;
    if (!states_.empty() && !whole) {
        fail(
            "positions {} to {} of sequence {} cannot be removed: the recurrent layers keep one "
            "state a sequence, which cannot be cut back; only the whole sequence can go",
            begin, std::min(end, length) - 1, sequence);
    }
    check_window(sequence, begin, end, length);
    full_.remove(sequence, begin, end);
    window_.remove(sequence, begin, end);
    if (whole) states_.clear(sequence);
}

/// Is all there that a query at `position` looks back to? The full cache knows every token.
bool Context::window_reaches(int32_t sequence, int32_t position) const {
    if (window_.empty()) return true;
    const int32_t begin = std::max(0, position - static_cast<int32_t>(model_->shape().n_swa) + 1);
    const Cells& window = window_.stream(window_.stream_of(sequence));
    const Cells& full = full_.stream(full_.stream_of(sequence));
    return window.count(sequence, begin, position) == full.count(sequence, begin, position);
}

/// Cells of a window cache are used again once their tokens have left the window, so a sequence
/// cannot be cut back to where they would be seen again.
void Context::check_window(int32_t sequence, int32_t begin, int32_t end, int32_t length) const {
    if (window_.empty() || begin <= 0 || end < length) return;
    if (window_reaches(sequence, begin)) return;
    const auto n_swa = static_cast<int32_t>(model_->shape().n_swa);
    const int32_t kept = window_.stream(window_.stream_of(sequence)).min_position(sequence);
    fail(
        "sequence {} cannot be cut back to {} positions: its window layers keep positions {} to {} "
        "only, so it can be cut to {} at least, or removed whole; --swa-full keeps all",
        sequence, begin, kept, length - 1, kept + n_swa - 1);
}

void Context::copy(int32_t from, int32_t to, int32_t end) {
    check_sequence(from);
    check_sequence(to);
    if (from == to) return;
    if (next_position(to) != 0)
        fail("sequence {} is not empty, so nothing can be copied to it", to);
    const int32_t length = next_position(from);
    if (end < 0) end = INT32_MAX;
    if (!states_.empty() && end < length) {
        fail(
            "the first {} of {} positions of sequence {} cannot be copied: the recurrent layers "
            "keep one state a sequence, which cannot be cut back; only all can be copied",
            end, length, from);
    }
    if (end < length) check_window(from, end, INT32_MAX, length);
    full_.copy(from, to, 0, end);
    window_.copy(from, to, 0, end);
    states_.copy(from, to);
}

bool Context::can_rewind(int32_t sequence, int32_t length, const Snapshot* snapshot) const {
    check_sequence(sequence);
    if (settings_.cache.n_seq > 1 && full_.n_stream() == 1) return false;
    if (length < 0 || length > next_position(sequence)) return false;
    if (!window_.can_rewind(sequence, length)) return false;
    return states_.empty() || length == 0 || (snapshot != nullptr && snapshot->length == length);
}

void Context::rewind(int32_t sequence, int32_t length, const Snapshot* snapshot) {
    if (!can_rewind(sequence, length, snapshot)) {
        fail("sequence {} cannot be made what it was at {} tokens", sequence, length);
    }
    full_.rewind(sequence, length);
    window_.rewind(sequence, length);
    if (states_.empty()) return;
    if (length == 0) {
        states_.clear(sequence);
    } else {
        states_.restore(sequence, snapshot->states);
    }
}

Snapshot Context::snapshot(int32_t sequence) const {
    return {.length = next_position(sequence), .states = states_.save(sequence)};
}

void Context::clear() {
    full_.clear();
    window_.clear();
    states_.clear();
}

}  // namespace pleat
