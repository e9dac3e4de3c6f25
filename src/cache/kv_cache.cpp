#include "cache/kv_cache.h"

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "base/units.h"
#include "cache/cache_type.h"
#include "model/backend.h"

namespace pleat {
namespace {

constexpr uint32_t rotation_unit = 64;
constexpr uint32_t n_kv_unit = 256;  ///< graphs look at multiples of this many cells

bool is_kind(Role role, CacheKind kind) {
    return owns_kv(role) && (role == Role::local_attention) == (kind == CacheKind::window);
}

/// As stock decides: by the head size of the model's first layer, for the caches of both kinds.
uint32_t rotation_size(const CacheType& type, const LayerShape& first, const LayerShape& layer,
                       uint32_t head_dim, bool largest) {
    if (!type.quantized() || first.head_dim_k % rotation_unit != 0) return 0;
    if (uint64_t{layer.n_head_kv} * head_dim % rotation_unit != 0 || head_dim < rotation_unit) {
        fail(
            "a quantised K/V cache ({}) is turned {} values at a time in this model, but a layer "
            "has "
            "{} K/V heads of {} values: use f16 for both",
            type.name, rotation_unit, layer.n_head_kv, head_dim);
    }
    uint32_t n = rotation_unit;
    while (largest && head_dim % (2 * n) == 0) n *= 2;
    return n;
}

}  // namespace

KvCache::KvCache(const LayerPlan& plan, const ModelShape& shape, const CacheSettings& settings,
                 CacheKind kind)
    : tracks_tokens_(kind == CacheKind::full),
      flash_attention_(settings.flash_attention),
      n_cells_(kind == CacheKind::window ? settings.n_cells_window(shape.n_swa)
                                         : settings.n_cells()) {
    streams_.assign(settings.n_stream(),
                    Cells(n_cells_, kind == CacheKind::window ? shape.n_swa : 0));
    std::vector<SlotStreams> slots;
    for (const Slot& slot : plan.slots()) slots.push_back({slot.layer, settings.n_stream()});
    allocate(slots, shape, settings, kind, shape.layers.at(static_cast<size_t>(plan[0].layer)));
    tracks_tokens_ = tracks_tokens_ || !empty();
}

KvCache::KvCache(std::span<const SlotStreams> slots, uint32_t n_cells, const ModelShape& shape,
                 const CacheSettings& settings, CacheKind kind)
    : flash_attention_(settings.flash_attention), n_cells_(n_cells) {
    allocate(slots, shape, settings, kind, shape.layers.front());
}

void KvCache::allocate(std::span<const SlotStreams> slots, const ModelShape& shape,
                       const CacheSettings& settings, CacheKind kind, const LayerShape& first) {
    const auto layer_of = [&](const SlotStreams& slot) -> const LayerShape& {
        return shape.layers.at(static_cast<size_t>(slot.layer));
    };
    std::vector<size_t> mine;
    for (size_t i = 0; i < slots.size(); ++i) {
        if (slots[i].n_stream > 0 && is_kind(layer_of(slots[i]).role, kind)) mine.push_back(i);
    }
    if (mine.empty()) return;

    context_.reset(ggml_init({.mem_size = 2 * mine.size() * ggml_tensor_overhead(),
                              .mem_buffer = nullptr,
                              .no_alloc = true}));
    if (!context_) fail("out of memory for {} cache slots", mine.size());
    slots_.resize(slots.size());
    for (const size_t i : mine) {
        const LayerShape& layer = layer_of(slots[i]);
        const int64_t n_embd_k = static_cast<int64_t>(layer.n_head_kv) * layer.head_dim_k;
        const auto n_embd_v = static_cast<int64_t>(v_row(layer, shape, settings));
        slots_[i].k = ggml_new_tensor_3d(context_.get(), ggml_type_of(settings.type_k), n_embd_k,
                                         n_cells_, slots[i].n_stream);
        slots_[i].v = ggml_new_tensor_3d(context_.get(), ggml_type_of(settings.type_v), n_embd_v,
                                         n_cells_, slots[i].n_stream);
        bytes_ += ggml_nbytes(slots_[i].k) + ggml_nbytes(slots_[i].v);
        n_embd_v_ = std::max(n_embd_v_, static_cast<uint32_t>(n_embd_v));
    }
    // Slots of a kind agree in their head sizes, but not in their heads: each is asked.
    for (const size_t i : mine) {
        const LayerShape& layer = layer_of(slots[i]);
        rotation_k_ = rotation_size(settings.type_k, first, layer, layer.head_dim_k, true);
        rotation_v_ = rotation_size(settings.type_v, first, layer, layer.head_dim_v, false);
    }
    buffer_.reset(ggml_backend_alloc_ctx_tensors_from_buft(
        context_.get(), ggml_backend_dev_buffer_type(cpu_device())));
    if (!buffer_) fail("cannot allocate {} for the KV cache", format_bytes(bytes_));
    ggml_backend_buffer_clear(buffer_.get(), 0);
}

const KvCache::Slots& KvCache::slot(int32_t index) const {
    return slots_.at(static_cast<size_t>(index));
}

bool KvCache::has(int32_t index) const {
    return index >= 0 && static_cast<size_t>(index) < slots_.size() &&
           slots_[static_cast<size_t>(index)].k != nullptr;
}

/// Calls with each piece of memory that a cell's K/V lie in.
template <typename Call>
void KvCache::for_each_piece(const Undo::Cell& cell, Call call) const {
    for (const Slots& slot : slots_) {
        if (slot.k == nullptr) continue;
        for (ggml_tensor* const tensor : {slot.k, slot.v}) {
            // A transposed V has an element of each cell in every channel.
            const bool transposed = tensor == slot.v && !flash_attention_;
            const size_t n = transposed ? static_cast<size_t>(tensor->ne[0]) : 1;
            const size_t bytes = transposed ? ggml_element_size(tensor) : tensor->nb[1];
            auto* const stream =
                static_cast<std::byte*>(tensor->data) + cell.stream * tensor->nb[2];
            for (size_t i = 0; i < n; ++i)
                call(stream + (i * n_cells_ + cell.index) * bytes, bytes);
        }
    }
}

void KvCache::go_back(const Undo& undo) {
    streams_ = undo.streams;
    const std::byte* next = undo.data.data();
    for (const Undo::Cell& cell : undo.overwritten) {
        for_each_piece(cell, [&](std::byte* piece, size_t bytes) {
            std::copy_n(next, bytes, piece);
            next += bytes;
        });
    }
}

std::optional<Placement> KvCache::place(const Ubatch& ubatch, Undo* undo) {
    Placement placement;
    if (!tracks_tokens_) return placement;
    const uint32_t n = ubatch.n_stream_tokens();
    for (uint32_t s = 0; s < ubatch.n_streams; ++s) {
        const auto cells = streams_.at(ubatch.stream(s)).find(n);
        if (!cells) return std::nullopt;
        placement.cells.insert(placement.cells.end(), cells->begin(), cells->end());
    }
    for (uint32_t s = 0; s < ubatch.n_streams; ++s) {
        Cells& stream = streams_[ubatch.stream(s)];
        const size_t at = static_cast<size_t>(s) * n;
        for (size_t i = at; undo != nullptr && i < at + n; ++i) {
            const Undo::Cell cell{.stream = ubatch.stream(s), .index = placement.cells[i]};
            if (!stream.holds_same(cell.index, undo->streams[cell.stream])) continue;
            undo->overwritten.push_back(cell);
            for_each_piece(cell, [&](const std::byte* piece, size_t bytes) {
                undo->data.insert(undo->data.end(), piece, piece + bytes);
            });
        }
        stream.set(std::span(placement.cells).subspan(at, n),
                   std::span(ubatch.positions).subspan(at, n),
                   std::span(ubatch.sequences).subspan(at, n));
        const auto padded = static_cast<uint32_t>(round_up(stream.used_end(), n_kv_unit));
        placement.n_kv_each.push_back(std::min(n_cells_, std::max(n_kv_unit, padded)));
        placement.n_kv = std::max(placement.n_kv, placement.n_kv_each.back());
    }
    return placement;
}

bool KvCache::fits(std::span<const uint32_t> n) const {
    for (size_t s = 0; s < streams_.size(); ++s) {
        if (n[s] > streams_[s].n_free()) return false;
    }
    return true;
}

void KvCache::remove(int32_t sequence, int32_t begin, int32_t end) {
    streams_.at(stream_of(sequence)).remove(sequence, begin, end);
}

void KvCache::copy(int32_t from, int32_t to, int32_t begin, int32_t end) {
    const uint32_t source = stream_of(from);
    const uint32_t target = stream_of(to);
    if (source == target) {
        streams_[source].share(from, to, begin, end);
        return;
    }
    // The target stream becomes the source's image, cells included, under its own sequence.
    streams_[target] = streams_[source];
    streams_[target].share(from, to, begin, end);
    streams_[target].remove(from, 0, INT32_MAX);
    for (const Slots& slot : slots_) {
        if (slot.k == nullptr) continue;
        for (ggml_tensor* const tensor : {slot.k, slot.v}) {
            // Only the CPU holds caches so far, so the bytes can be moved in place.
            auto* const data = static_cast<std::byte*>(tensor->data);
            const size_t bytes =
                flash_attention_ ? streams_[source].used_end() * tensor->nb[1] : tensor->nb[2];
            std::copy_n(data + source * tensor->nb[2], bytes, data + target * tensor->nb[2]);
        }
    }
}

void KvCache::clear() {
    for (Cells& stream : streams_) stream.clear();
    if (buffer_) ggml_backend_buffer_clear(buffer_.get(), 0);
}

}  // namespace pleat
