#include "lab/balanced_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace pleat {
namespace {

/// Half of the items are of each source; the values of one are 0 to 99, those of the other 1000
/// times that. Their places are mixed.
std::vector<ItemLevel> items() {
    std::vector<ItemLevel> list;
    for (size_t i = 0; i < 200; ++i) {
        const size_t k = i * 77 % 200;
        list.push_back({.source = k % 2, .value = static_cast<double>(k / 2) * (k % 2 ? 1e3 : 1)});
    }
    return list;
}

TEST(BalancedOrder, HasEveryItemOnce) {
    for (const size_t n : {size_t{0}, size_t{1}, size_t{2}, size_t{7}, size_t{200}}) {
        const std::vector<ItemLevel> all = items();
        std::vector<size_t> order = balanced_order(std::span(all).first(n), 5);
        std::ranges::sort(order);
        ASSERT_EQ(order.size(), n);
        for (size_t i = 0; i < n; ++i) EXPECT_EQ(order[i], i);
    }
}

TEST(BalancedOrder, BeginsWithASampleLikeTheWhole) {
    const std::vector<ItemLevel> all = items();
    constexpr uint64_t n_seeds = 40;
    for (const size_t n : {size_t{10}, size_t{20}, size_t{50}}) {
        double squares = 0.0;  // of the error of the first source's mean, 49.5
        for (uint64_t seed = 1; seed <= n_seeds; ++seed) {
            const std::vector<size_t> order = balanced_order(all, seed);
            double sum = 0.0;
            double of_first = 0.0;
            for (size_t i = 0; i < n; ++i) {
                if (all[order[i]].source != 0) continue;
                ++of_first;
                sum += all[order[i]].value;
            }
            EXPECT_NEAR(of_first, static_cast<double>(n) / 2, 1.5);
            squares += (sum / of_first - 49.5) * (sum / of_first - 49.5);
        }
        // Of items drawn at random, of which each source would give half by luck alone.
        const double by_luck = 28.9 / std::sqrt(static_cast<double>(n) / 2);
        EXPECT_LT(std::sqrt(squares / n_seeds), 0.6 * by_luck) << n;
    }
}

TEST(BalancedOrder, DependsOnTheSeedAlone) {
    EXPECT_EQ(balanced_order(items(), 3), balanced_order(items(), 3));
    EXPECT_NE(balanced_order(items(), 3), balanced_order(items(), 4));
}

}  // namespace
}  // namespace pleat
