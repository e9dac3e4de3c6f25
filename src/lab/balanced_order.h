#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace pleat {

/// What an item is like, for an order that mixes all kinds.
struct ItemLevel {
    size_t source = 0;   ///< items of one source are compared with each other
    double value = 0.0;  ///< how hard it is, say
    auto operator<=>(const ItemLevel&) const = default;
};

/// A permutation of the items of which every beginning is a sample like the whole: the sorted items
/// are taken at multiples of the golden ratio, from a start that the seed decides (a Kronecker
/// sequence; each stratum of sources and values gets its share).
std::vector<size_t> balanced_order(std::span<const ItemLevel> items, uint64_t seed);

}  // namespace pleat
