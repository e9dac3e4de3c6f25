#include "lab/balanced_order.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <numeric>
#include <set>

#include "lab/random.h"

namespace pleat {

std::vector<size_t> balanced_order(std::span<const ItemLevel> items, uint64_t seed) {
    std::vector<size_t> sorted(items.size());
    std::iota(sorted.begin(), sorted.end(), size_t{0});
    std::ranges::stable_sort(sorted, {}, [&](size_t i) { return items[i]; });

    std::set<size_t> left;  // places in `sorted`
    for (size_t place = 0; place < sorted.size(); ++place) left.insert(left.end(), place);
    const double start = std::ldexp(static_cast<double>(SplitMix64(seed).next() >> 11), -53);
    std::vector<size_t> order;
    for (size_t k = 0; k < sorted.size(); ++k) {
        const double turn = start + static_cast<double>(k) * std::numbers::phi;
        const auto place =
            static_cast<size_t>((turn - std::floor(turn)) * static_cast<double>(sorted.size()));
        auto next = left.lower_bound(place);
        if (next == left.end()) --next;
        if (next != left.begin()) {
            const auto before = std::prev(next);
            const auto distance = [&](size_t p) { return p > place ? p - place : place - p; };
            if (distance(*before) < distance(*next)) next = before;
        }
        order.push_back(sorted[*next]);
        left.erase(next);
    }
    return order;
}

}  // namespace pleat
