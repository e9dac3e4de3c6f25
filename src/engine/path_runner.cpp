#include "engine/path_runner.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/units.h"
#include "engine/inputs.h"
#include "plan/cost.h"

namespace pleat {
namespace {

/// Caches have, and graphs look at, multiples of so many cells.
constexpr uint32_t cell_unit = 64;

uint32_t rounded(uint32_t n_tokens) { return static_cast<uint32_t>(round_up(n_tokens, cell_unit)); }

ContextSettings completed(ContextSettings settings) {
    settings.cache.flash_attention = settings.flash_attention != FlashAttention::off;
    if (!settings.cache.flash_attention && settings.cache.type_v.quantized()) {
        fail("a quantised V cache ({}) needs flash attention: use -fa on, or -ctv f16",
             settings.cache.type_v.name);
    }
    return settings;
}

uint64_t all_bytes(std::span<const LayerPlan> plans, const ModelShape& shape, uint32_t n_seq,
                   uint32_t n_ctx, const ContextSettings& settings) {
    uint64_t bytes = 0;
    for (const LayerPlan& plan : plans) {
        bytes += n_seq * PathRunner::sequence_bytes(plan, shape, n_ctx, settings);
    }
    return bytes;
}

std::vector<SlotStreams> slots_of(const PathSchedule& schedule, uint32_t n_seq) {
    std::vector<SlotStreams> slots;
    for (const PathSchedule::Batch& batch : schedule.batches) {
        // A pass without a slot has a place in the list, but no memory.
        const auto n = static_cast<uint32_t>(batch.plans.size()) * n_seq;
        slots.push_back({batch.pass.layer, batch.pass.slot == no_slot ? 0 : n});
    }
    return slots;
}

std::byte* stream_data(const ggml_tensor* tensor, size_t stream) {
    return static_cast<std::byte*>(tensor->data) + stream * tensor->nb[2];
}

/// The first n_cells cells of a stream of K/V, to another cache's slot for the same layer.
void copy_cells(const ggml_tensor* from, size_t from_stream, const ggml_tensor* to,
                size_t to_stream, size_t n_cells, bool transposed) {
    const std::byte* const source = stream_data(from, from_stream);
    std::byte* const target = stream_data(to, to_stream);
    if (!transposed) {
        std::memcpy(target, source, n_cells * to->nb[1]);
        return;
    }
    const size_t element = ggml_element_size(to);
    for (int64_t channel = 0; channel < to->ne[0]; ++channel) {
        const auto c = static_cast<size_t>(channel);
        std::memcpy(target + c * static_cast<size_t>(to->ne[1]) * element,
                    source + c * static_cast<size_t>(from->ne[1]) * element, n_cells * element);
    }
}

void copy_row(const ggml_tensor* from, size_t from_row, const ggml_tensor* to, size_t to_row) {
    std::memcpy(static_cast<std::byte*>(to->data) + to_row * to->nb[1],
                static_cast<const std::byte*>(from->data) + from_row * from->nb[1], to->nb[1]);
}

}  // namespace

bool PathRunner::takes(const Model& model) { return PassRunner::takes(model); }

uint64_t PathRunner::sequence_bytes(const LayerPlan& plan, const ModelShape& shape, uint32_t n_ctx,
                                    const ContextSettings& settings) {
    CacheSettings one = completed(settings).cache;
    one.n_seq = 1;
    const PlanCost cost = plan_cost(plan, shape, one);
    return cost.kv_bytes_per_token() * rounded(n_ctx) + cost.state_bytes;
}

PathRunner::PathRunner(std::shared_ptr<Model> model, std::vector<LayerPlan> plans, uint32_t n_seq,
                       uint32_t n_ctx, ContextSettings settings)
    : model_(std::move(model)),
      plans_(std::move(plans)),
      settings_(completed(settings)),
      n_seq_(n_seq),
      n_cells_(rounded(n_ctx)),
      schedule_(schedule_paths(plans_)),
      full_((check_memory(), slots_of(schedule_, n_seq)), n_cells_, model_->shape(),
            settings_.cache, CacheKind::full),
      window_(slots_of(schedule_, n_seq), n_cells_, model_->shape(), settings_.cache,
              CacheKind::window),
      states_(slots_of(schedule_, n_seq), model_->shape()),
      n_of_plan_(plans_.size()) {
    for (const LayerPlan& plan : plans_) model_->load(plan);
    rope_factors_ = rope_factors(*model_, n_ctx);
    std::vector<uint32_t> all(plans_.size());
    for (uint32_t p = 0; p < plans_.size(); ++p) all[p] = p;
    add_members(all, std::nullopt);
    for (size_t b = 0; b < schedule_.batches.size(); ++b) {
        add_members(schedule_.batches[b].plans, b);
    }
    std::vector<uint32_t> most;
    for (const Members& members : members_) {
        const auto n = static_cast<uint32_t>(std::ranges::count(members.plans, true));
        most.push_back(n * n_seq_);
    }
    executor_.reserve(build(most, n_cells_));
}

void PathRunner::check_memory() const {
    if (plans_.empty() || n_seq_ == 0) fail("no plan to decode");
    if (!takes(*model_)) fail("passes of this model cannot run apart from their plan");
    const uint64_t wanted = all_bytes(plans_, model_->shape(), n_seq_, n_cells_, settings_);
    const auto available = available_memory();
    if (!available || wanted <= *available) return;
    fail("the K/V of {} sequences of each of {} plans take {}, but only {} of memory are free",
         n_seq_, plans_.size(), format_bytes(wanted), format_bytes(*available));
}

void PathRunner::add_members(const std::vector<uint32_t>& plans, std::optional<size_t> batch) {
    std::vector<bool> taking(plans_.size());
    for (const uint32_t p : plans) taking[p] = true;
    auto members = std::ranges::find(members_, taking, &Members::plans);
    if (members == members_.end()) {
        members = members_.insert(members_.end(), {.plans = taking, .batches = {}, .rows = {}});
    }
    if (!batch) return;
    members->batches.push_back(*batch);
    members_of_batch_.push_back(static_cast<size_t>(members - members_.begin()));
}

void PathRunner::begin(size_t id, uint32_t plan, uint32_t n_tokens) {
    if (n_of_plan_.at(plan) == n_seq_) fail("plan {} has {} sequences already", plan, n_seq_);
    for (Members& members : members_) {
        if (members.plans[plan]) members.rows.push_back(sequences_.size());
    }
    sequences_.push_back({id, plan, static_cast<int32_t>(n_tokens)});
    ++n_of_plan_[plan];
}

void PathRunner::take(size_t row, size_t index, const PassRunner& runner, size_t from) {
    const size_t b = schedule_.batch_of.at(sequences_.at(row).plan).at(index);
    const Pass& pass = schedule_.batches[b].pass;
    if (pass.slot == no_slot) return;
    const auto& rows = members_[members_of_batch_[b]].rows;
    const auto stream = static_cast<size_t>(std::ranges::find(rows, row) - rows.begin());
    if (model_->shape().layers[static_cast<size_t>(pass.layer)].role == Role::recurrent) {
        const StateCache::Slots& source = runner.states(pass.layer);
        const StateCache::Slots& target = states_.slot(pass.slot);
        copy_row(source.conv, from, target.conv, stream);
        copy_row(source.delta, from, target.delta, stream);
        return;
    }
    const KvCache& cache = window_.has(pass.slot) ? window_ : full_;
    const KvCache::Slots& source = runner.kv(pass.layer);
    const KvCache::Slots& target = cache.slot(pass.slot);
    copy_cells(source.k, from, target.k, stream, runner.n_tokens(), false);
    copy_cells(source.v, from, target.v, stream, runner.n_tokens(), !cache.flash_attention());
}

void PathRunner::move_stream(size_t batch, size_t from, size_t to) const {
    const Pass& pass = schedule_.batches[batch].pass;
    if (pass.slot == no_slot || from == to) return;
    if (model_->shape().layers[static_cast<size_t>(pass.layer)].role == Role::recurrent) {
        const StateCache::Slots& slot = states_.slot(pass.slot);
        copy_row(slot.conv, from, slot.conv, to);
        copy_row(slot.delta, from, slot.delta, to);
        return;
    }
    const KvCache& cache = window_.has(pass.slot) ? window_ : full_;
    for (const ggml_tensor* const tensor : {cache.slot(pass.slot).k, cache.slot(pass.slot).v}) {
        std::memcpy(stream_data(tensor, to), stream_data(tensor, from), tensor->nb[2]);
    }
}

void PathRunner::end(size_t row) {
    const uint32_t plan = sequences_.at(row).plan;
    const size_t last = sequences_.size() - 1;
    for (Members& members : members_) {
        auto& rows = members.rows;
        if (members.plans[plan]) {
            const auto gap = std::ranges::find(rows, row);
            const auto to = static_cast<size_t>(gap - rows.begin());
            for (const size_t b : members.batches) move_stream(b, rows.size() - 1, to);
            *gap = rows.back();
            rows.pop_back();
        }
        std::ranges::replace(rows, last, row);
    }
    sequences_[row] = sequences_.back();
    sequences_.pop_back();
    --n_of_plan_[plan];
}

/// Members without a sequence have no part in the graph.
Graph PathRunner::build(std::span<const uint32_t> n_rows, uint32_t n_kv) const {
    std::vector<uint32_t> taking;
    std::vector<size_t> set_of(n_rows.size());
    for (size_t m = 0; m < n_rows.size(); ++m) {
        set_of[m] = taking.size();
        if (n_rows[m] > 0) taking.push_back(n_rows[m]);
    }
    std::vector<SetPass> passes;
    for (size_t b = 0; b < schedule_.batches.size(); ++b) {
        const size_t m = members_of_batch_[b];
        if (n_rows[m] > 0) passes.push_back({schedule_.batches[b].pass, set_of[m]});
    }
    const GraphShape shape{.n_tokens = n_rows[0],
                           .n_outputs = n_rows[0],
                           .n_streams = n_rows[0],
                           .first_stream = 0,
                           .n_kv_full = full_.empty() ? 0 : n_kv,
                           .n_kv_window = window_.empty() ? 0 : n_kv,
                           .n_seqs = n_rows[0],
                           .first_state = 0};
    const Caches caches{.full = full_, .window = window_, .states = states_};
    return GraphBuilder(*model_, plans_.front(), caches, rope_factors_, shape, passes.size())
        .build_paths(passes, taking);
}

void PathRunner::set_inputs(std::span<const int32_t> tokens) const {
    ggml_backend_tensor_set(graph_->tokens, tokens.data(), 0, tokens.size_bytes());
    auto set = graph_->row_sets.begin();
    for (const Members& members : members_) {
        if (members.rows.empty()) continue;
        std::vector<int32_t> positions;
        for (const size_t row : members.rows) positions.push_back(sequences_[row].position);
        set_rows(*set, members.rows, positions);
        set_kv_inputs(set->full, full_, single_token_values(full_, positions, set->full.n_kv, 0));
        set_kv_inputs(
            set->window, window_,
            single_token_values(window_, positions, set->window.n_kv, model_->shape().n_swa));
        ++set;
    }
}

void PathRunner::step(std::span<const int32_t> tokens) {
    if (tokens.size() != sequences_.size() || tokens.empty()) {
        fail("{} tokens for {} sequences", tokens.size(), sequences_.size());
    }
    std::vector<uint32_t> n_rows;
    for (const Members& members : members_) {
        n_rows.push_back(static_cast<uint32_t>(members.rows.size()));
    }
    int32_t greatest = 0;
    for (const Sequence& s : sequences_) greatest = std::max(greatest, s.position);
    const auto n_used = static_cast<uint32_t>(greatest) + 1;
    if (n_used > n_cells_)
        fail("a sequence is longer than the {} tokens it has room for", n_cells_);
    const uint32_t n_kv = rounded(n_used);
    if (!graph_ || graph_rows_ != n_rows || graph_n_kv_ != n_kv) {
        graph_.reset();
        Graph graph = build(n_rows, n_kv);
        executor_.allocate(graph);
        graph_ = std::move(graph);
        graph_rows_ = n_rows;
        graph_n_kv_ = n_kv;
        ++n_graphs_built_;
    }
    set_inputs(tokens);
    executor_.compute(*graph_,
                      tokens.size() == 1 ? settings_.n_threads : settings_.n_threads_batch);
    for (Sequence& s : sequences_) ++s.position;
    logits_.resize(tokens.size() * model_->hparams().n_vocab);
    ggml_backend_tensor_get(graph_->logits, logits_.data(), 0, logits_.size() * sizeof(float));
}

std::span<const float> PathRunner::logits(size_t row) const {
    const size_t n_vocab = model_->hparams().n_vocab;
    return std::span(logits_).subspan(row * n_vocab, n_vocab);
}

}  // namespace pleat
