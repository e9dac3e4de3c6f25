#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "plan/plan.h"
#include "plan/shape.h"

namespace pleat {

/// A K or V cache type: `block_size` elements take `block_bytes` bytes.
struct CacheType {
    std::string_view name;
    uint32_t block_size;
    uint32_t block_bytes;
    bool quantized() const { return block_size > 1; }
};

/// The types stock allows for -ctk and -ctv: f32 f16 bf16 q8_0 q4_0 q4_1 iq4_nl q5_0 q5_1.
std::span<const CacheType> cache_types();

/// Throws Error that lists the types when the name is none of them.
const CacheType& cache_type(std::string_view name);

/// The context settings that decide what caches weigh; the runtime allocates by the same struct.
struct CacheSettings {
    uint32_t n_ctx = 4096;  ///< cells of one sequence, before rounding up to a multiple of 256
    uint32_t n_seq = 1;     ///< sequences
    uint32_t n_ubatch = 512;
    bool kv_unified = false;      ///< one pool of n_ctx * n_seq cells for all sequences
    bool swa_full = false;        ///< window layers get full-size caches
    bool flash_attention = true;  ///< without it V lies transposed
    CacheType type_k = {"f16", 1, 2};
    CacheType type_v = {"f16", 1, 2};

    /// Cells per stream of the full cache, and how many streams there are.
    uint32_t n_cells() const;
    uint32_t n_stream() const;
    /// Cells per stream of the window cache of a model with this window.
    uint32_t n_cells_window(uint32_t n_swa) const;
};

/// Elements of one token's V. A transposed V is as wide in all layers as in the widest, since one
/// list of cells serves them all.
uint64_t v_row(const LayerShape& layer, const ModelShape& shape, const CacheSettings& settings);

struct PlanCost {
    int32_t n_pass = 0;
    uint64_t weight_resident_bytes = 0;  ///< as the file stores them; repeats add nothing
    uint64_t weight_read_bytes = 0;      ///< per token: what decode pays
    uint64_t flops = 0;                  ///< matmul FLOPs per token
    uint64_t kv_bytes_per_token_full = 0;
    uint64_t kv_bytes_per_token_window = 0;
    uint64_t kv_bytes_full = 0;  ///< allocated for the settings
    uint64_t kv_bytes_window = 0;
    uint64_t state_bytes = 0;  ///< recurrent state of all sequences
    bool operator==(const PlanCost&) const = default;

    uint64_t kv_bytes_per_token() const {
        return kv_bytes_per_token_full + kv_bytes_per_token_window;
    }
    uint64_t cache_bytes() const { return kv_bytes_full + kv_bytes_window + state_bytes; }
};

/// Bytes of one slot's K and V tensors (or state) under the settings.
uint64_t slot_bytes(const Slot& slot, const ModelShape& shape, const CacheSettings& settings);

/// What a plan costs, by role. Throws Error when a cache type does not divide a head size.
PlanCost plan_cost(const LayerPlan& plan, const ModelShape& shape, const CacheSettings& settings);

/// Predicted time of one decoded token relative to the identity plan: weight bytes read are what
/// decode pays, so this is their ratio.
double predicted_decode_ratio(const PlanCost& plan, const PlanCost& identity);

}  // namespace pleat
