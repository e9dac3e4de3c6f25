#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace pleat {

/// What one measure found under one plan, item by item. An item is what may be drawn, split and
/// paired as a whole: a run of scored tokens of a text, a probe question. The same items in the
/// same order for every plan, so that differences can be paired.
struct ItemScores {
    std::vector<double> sum;     ///< of the item's scored tokens, or its score
    std::vector<double> weight;  ///< scored tokens of the item; 1 for a question

    size_t size() const { return sum.size(); }
    bool operator==(const ItemScores&) const = default;
};

/// One number of a plan, with its standard error.
struct Score {
    double value = 0.0;
    double error = 0.0;
    bool operator==(const Score&) const = default;
};

/// A measure and which way is better.
struct Measure {
    std::string name;  ///< "nll", "kl", "top1", "probe:<kind>", ...
    bool higher_is_better = false;
    bool operator==(const Measure&) const = default;
};

}  // namespace pleat
