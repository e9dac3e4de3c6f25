#pragma once

#include <cstdint>

namespace pleat {

/// A cost beside the identity plan's; 1 where the identity has none of it.
inline double cost_ratio(uint64_t cost, uint64_t identity) {
    return identity == 0 ? 1.0 : static_cast<double>(cost) / static_cast<double>(identity);
}

}  // namespace pleat
