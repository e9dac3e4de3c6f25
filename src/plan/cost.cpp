#include "plan/cost.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <vector>

#include "base/checked.h"
#include "base/error.h"

namespace pleat {
namespace {

/// The product of sizes that come from a file and from flags. Throws Error when it does not fit.
uint64_t product(std::initializer_list<uint64_t> factors) {
    uint64_t result = 1;
    for (const uint64_t factor : factors) {
        const std::optional<uint64_t> next = checked_mul(result, factor);
        if (!next) fail("the cache of one pass takes more than 2^64 bytes");
        result = *next;
    }
    return result;
}

/// Bytes of one token's K or V. A row must be whole blocks for every head, as kernels read heads.
uint64_t row_bytes(uint64_t n_values, uint32_t head_dim, const CacheType& type, char kind) {
    if (head_dim % type.block_size != 0) {
        fail(
            "{} cache type {} has blocks of {} values, which do not divide the head size {}; "
            "f16 and f32 always do",
            kind, type.name, type.block_size, head_dim);
    }
    return product({n_values / type.block_size, type.block_bytes});
}

uint64_t token_bytes(const LayerShape& layer, const ModelShape& shape,
                     const CacheSettings& settings) {
    const uint64_t k_row = uint64_t{layer.n_head_kv} * layer.head_dim_k;
    return row_bytes(k_row, layer.head_dim_k, settings.type_k, 'K') +
           row_bytes(v_row(layer, shape, settings), layer.head_dim_v, settings.type_v, 'V');
}

const LayerShape& layer_of(const Slot& slot, const ModelShape& shape) {
    return shape.layers[static_cast<size_t>(slot.layer)];
}

void add_weights(PlanCost& cost, const LayerPlan& plan, const ModelShape& shape) {
    struct Used {
        bool attention = false;
        bool ffn = false;
        bool other = false;
    };
    std::vector<Used> used(shape.layers.size());
    WeightCost sum;
    // Every pass reads and computes; only the first to use a part makes it resident.
    const auto add = [&](WeightCost part, bool& resident) {
        if (resident) part.resident_bytes = 0;
        resident = true;
        sum += part;
    };
    for (const Pass& pass : plan) {
        const auto i = static_cast<size_t>(pass.layer);
        if (pass.attention) add(shape.layers[i].attention, used[i].attention);
        if (pass.ffn) add(shape.layers[i].ffn, used[i].ffn);
        add(shape.layers[i].other, used[i].other);
    }
    sum += shape.embedding;
    sum += shape.output;
    cost.weight_resident_bytes = sum.resident_bytes;
    cost.weight_read_bytes = sum.read_bytes;
    cost.flops = sum.flops;
}

void add_cache(PlanCost& cost, const LayerPlan& plan, const ModelShape& shape,
               const CacheSettings& settings) {
    // A shared-KV consumer has no slot of its own in this list, so nothing is counted twice.
    for (const Slot& slot : plan.slots()) {
        const LayerShape& layer = layer_of(slot, shape);
        const uint64_t bytes = slot_bytes(slot, shape, settings);
        switch (layer.role) {
            case Role::recurrent:
                cost.state_bytes += bytes;
                break;
            case Role::local_attention:
                cost.kv_bytes_window += bytes;
                cost.kv_bytes_per_token_window += token_bytes(layer, shape, settings);
                break;
            case Role::full_attention:
            case Role::gated_attention:
            case Role::shared_kv_attention:
                cost.kv_bytes_full += bytes;
                cost.kv_bytes_per_token_full += token_bytes(layer, shape, settings);
                break;
        }
    }
}

}  // namespace

uint64_t v_row(const LayerShape& layer, const ModelShape& shape, const CacheSettings& settings) {
    const auto width = [](const LayerShape& l) { return uint64_t{l.n_head_kv} * l.head_dim_v; };
    if (settings.flash_attention) return width(layer);
    uint64_t widest = 0;
    for (const LayerShape& l : shape.layers) widest = std::max(widest, width(l));
    return widest;
}

uint64_t slot_bytes(const Slot& slot, const ModelShape& shape, const CacheSettings& settings) {
    const LayerShape& layer = layer_of(slot, shape);
    if (layer.role == Role::recurrent) return product({layer.state_bytes(), settings.n_seq});
    const uint32_t n_cells = layer.role == Role::local_attention
                                 ? settings.n_cells_window(shape.n_swa)
                                 : settings.n_cells();
    return product({token_bytes(layer, shape, settings), n_cells, settings.n_stream()});
}

PlanCost plan_cost(const LayerPlan& plan, const ModelShape& shape, const CacheSettings& settings) {
    PlanCost cost;
    cost.n_pass = static_cast<int32_t>(plan.size());
    add_weights(cost, plan, shape);
    add_cache(cost, plan, shape, settings);
    return cost;
}

double predicted_decode_ratio(const PlanCost& plan, const PlanCost& identity) {
    if (identity.weight_read_bytes == 0) return 1.0;
    return static_cast<double>(plan.weight_read_bytes) /
           static_cast<double>(identity.weight_read_bytes);
}

}  // namespace pleat
