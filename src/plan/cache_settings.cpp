#include <algorithm>
#include <array>
#include <limits>

#include "base/checked.h"
#include "base/error.h"
#include "plan/cost.h"

namespace pleat {
namespace {

// Block sizes and bytes as ggml defines them.
constexpr std::array<CacheType, 9> types = {{
    {"f32", 1, 4},
    {"f16", 1, 2},
    {"bf16", 1, 2},
    {"q8_0", 32, 34},
    {"q4_0", 32, 18},
    {"q4_1", 32, 20},
    {"iq4_nl", 32, 18},
    {"q5_0", 32, 22},
    {"q5_1", 32, 24},
}};

// Stock pads its caches to this many cells.
constexpr uint64_t cell_unit = 256;

uint32_t checked_cells(uint64_t n_cells, const CacheSettings& settings) {
    if (n_cells <= std::numeric_limits<uint32_t>::max()) return static_cast<uint32_t>(n_cells);
    fail("a cache for {} sequences of {} tokens has {} cells; at most {} are possible",
         settings.n_seq, settings.n_ctx, n_cells, std::numeric_limits<uint32_t>::max());
}

}  // namespace

std::span<const CacheType> cache_types() { return types; }

const CacheType& cache_type(std::string_view name) {
    const auto found = std::ranges::find(types, name, &CacheType::name);
    if (found != types.end()) return *found;
    std::string names;
    for (const CacheType& type : types) names.append(names.empty() ? "" : ", ").append(type.name);
    fail("cache type {} is not known; cache types are {}", name, names);
}

uint32_t CacheSettings::n_cells() const {
    return checked_cells(round_up(n_ctx, cell_unit) * (kv_unified ? n_seq : 1), *this);
}

uint32_t CacheSettings::n_stream() const { return kv_unified ? 1 : n_seq; }

uint32_t CacheSettings::n_cells_window(uint32_t n_swa) const {
    const uint64_t full = n_cells();
    if (swa_full) return static_cast<uint32_t>(full);
    const uint64_t window = uint64_t{n_swa} * (kv_unified ? n_seq : 1) + n_ubatch;
    return checked_cells(round_up(std::min(full, window), cell_unit), *this);
}

}  // namespace pleat
