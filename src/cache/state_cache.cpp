#include "cache/state_cache.h"

#include <algorithm>

#include "base/error.h"
#include "base/units.h"
#include "model/backend.h"

namespace pleat {

StateCache::StateCache(const LayerPlan& plan, const ModelShape& shape,
                       const CacheSettings& settings) {
    std::vector<SlotStreams> slots;
    for (const Slot& slot : plan.slots()) slots.push_back({slot.layer, settings.n_seq});
    allocate(slots, shape);
}

StateCache::StateCache(std::span<const SlotStreams> slots, const ModelShape& shape) {
    allocate(slots, shape);
}

void StateCache::allocate(std::span<const SlotStreams> slots, const ModelShape& shape) {
    const auto layer_of = [&](const SlotStreams& slot) -> const LayerShape& {
        return shape.layers.at(static_cast<size_t>(slot.layer));
    };
    const auto is_recurrent = [&](const SlotStreams& slot) {
        return slot.n_stream > 0 && layer_of(slot).role == Role::recurrent;
    };
    const auto n = static_cast<size_t>(std::ranges::count_if(slots, is_recurrent));
    if (n == 0) return;
    context_.reset(ggml_init(
        {.mem_size = 2 * n * ggml_tensor_overhead(), .mem_buffer = nullptr, .no_alloc = true}));
    if (!context_) fail("out of memory for {} recurrent slots", n);
    slots_.resize(slots.size());
    for (size_t i = 0; i < slots.size(); ++i) {
        if (!is_recurrent(slots[i])) continue;
        const LayerShape& layer = layer_of(slots[i]);
        const auto rows = [&](uint64_t width) {
            return ggml_new_tensor_2d(context_.get(), GGML_TYPE_F32, static_cast<int64_t>(width),
                                      slots[i].n_stream);
        };
        slots_[i] = {.conv = rows(layer.n_conv_state), .delta = rows(layer.n_delta_state)};
        bytes_ += ggml_nbytes(slots_[i].conv) + ggml_nbytes(slots_[i].delta);
    }
    buffer_.reset(ggml_backend_alloc_ctx_tensors_from_buft(
        context_.get(), ggml_backend_dev_buffer_type(cpu_device())));
    if (!buffer_) fail("cannot allocate {} for the recurrent states", format_bytes(bytes_));
    clear();
}

template <typename Call>
void StateCache::for_each_row(int32_t sequence, Call call) const {
    for (const Slots& slot : slots_) {
        if (slot.conv == nullptr) continue;
        for (ggml_tensor* const tensor : {slot.conv, slot.delta}) {
            call(tensor, static_cast<size_t>(sequence) * tensor->nb[1], tensor->nb[1]);
        }
    }
}

void StateCache::clear(int32_t sequence) {
    for_each_row(sequence, [](ggml_tensor* tensor, size_t offset, size_t bytes) {
        ggml_backend_tensor_memset(tensor, 0, offset, bytes);
    });
}

void StateCache::copy(int32_t from, int32_t to) { restore(to, save(from)); }

void StateCache::clear() {
    if (buffer_) ggml_backend_buffer_clear(buffer_.get(), 0);
}

std::vector<std::byte> StateCache::save(int32_t sequence) const {
    std::vector<std::byte> saved;
    for_each_row(sequence, [&](const ggml_tensor* tensor, size_t offset, size_t bytes) {
        const size_t at = saved.size();
        saved.resize(at + bytes);
        ggml_backend_tensor_get(tensor, saved.data() + at, offset, bytes);
    });
    return saved;
}

void StateCache::restore(int32_t sequence, const std::vector<std::byte>& saved) {
    size_t at = 0;
    for_each_row(sequence, [&](ggml_tensor* tensor, size_t offset, size_t bytes) {
        ggml_backend_tensor_set(tensor, saved.data() + at, offset, bytes);
        at += bytes;
    });
}

}  // namespace pleat
