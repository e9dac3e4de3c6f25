#include "cache/memory_check.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/units.h"
#include "cache/cells.h"

namespace pleat {

void check_cache_memory(const LayerPlan& plan, const ModelShape& shape,
                        const CacheSettings& settings) {
    // Also without any K/V it is written down which token every cell holds.
    const uint64_t n_cells = uint64_t{settings.n_cells()} * settings.n_stream();
    const uint64_t wanted =
        plan_cost(plan, shape, settings).cache_bytes() + n_cells * Cells::bytes_per_cell;
    const auto available = available_memory();
    if (!available || wanted <= *available) return;
    fail(
        "the cache of this context takes {} ({} tokens, {} sequences), but only {} of memory are "
        "free; ask for a smaller context with -c",
        format_bytes(wanted), settings.n_ctx, settings.n_seq, format_bytes(*available));
}

}  // namespace pleat
