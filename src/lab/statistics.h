#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lab/scores.h"

namespace pleat {

// How sure a score, a difference and a choice are. All functions throw Error where a number is NaN
// or infinite, or where there is nothing to average.

/// R = sum / weight over all items, with the standard error of a ratio estimator whose items are a
/// sample of many (Cochran 1977, Sampling Techniques, section 6.4, without finite population):
///
///     error = sqrt(n / (n - 1) * sum_i (sum_i - R * weight_i)^2) / sum_i weight_i
///
/// which is s / sqrt(n) when all weights are equal. One item says nothing about the spread: its
/// error is infinite. Throws Error for no items, a negative weight or weights that are all 0.
Score mean_of(const ItemScores& items);

/// exp of a mean negative log-likelihood: perplexity. The error is of first order (delta method):
/// exp(mean) * error of the mean.
Score perplexity_of(const Score& mean_nll);

/// Items of these indices, in this order. Throws Error for an index that is none.
ItemScores part_of(const ItemScores& items, std::span<const size_t> indices);

struct BootstrapOptions {
    uint64_t seed = 1;
    size_t n_resamples = 2000;
    double level = 0.95;  ///< of the interval
    bool operator==(const BootstrapOptions&) const = default;
};

/// A plan against the identity plan on the same items.
struct PairedDifference {
    double mean = 0.0;   ///< plan - identity, weighted as in mean_of
    double error = 0.0;  ///< of that mean over items, as in mean_of
    double low = 0.0;    ///< the interval's ends
    double high = 0.0;
    double p = 1.0;  ///< two-sided
    size_t n_items = 0;
    size_t n_changed = 0;  ///< items whose score is not the identity plan's
    bool operator==(const PairedDifference&) const = default;
};

/// - Interval: percentile bootstrap over items (Efron and Tibshirani 1993, section 13.3): of B
///   resamples the k-th smallest and the k-th largest mean, k = floor((B + 1) * (1 - level) / 2),
///   at least 1. The same seed draws the same items for every plan. For one item it is infinite.
/// - p: Student's t of mean / error with n - 1 degrees of freedom. A bootstrap's own p is never
///   under 2 / (B + 1), with which nothing would survive among hundreds of plans. But never under
///   2^(1 - n_changed), the least that changing signs at random can give: three items that changed
///   the same way prove little, however many did not change.
/// Throws Error as mean_of does, and when the weights of the two differ.
PairedDifference paired_difference(const ItemScores& plan, const ItemScores& identity,
                                   const BootstrapOptions& options = {});

/// What the plan's mean on all items is expected to be when it was scored on the first few of those
/// that the identity plan was scored on: the identity's mean on all, plus the difference on the
/// seen items, plus what a line through these says of the items not seen (regression estimator,
/// Cochran 1977, section 7.1, of the difference on the identity's value; the slope is drawn a
/// little towards 0, since few items tell little). The plain mean when all were seen.
double expected_mean(const ItemScores& plan, const ItemScores& identity);

/// P(|T| >= |t|) for Student's t with `freedom` > 0 degrees of freedom, by the continued fraction
/// of the incomplete beta function (DLMF 8.17.22).
double student_two_sided(double t, double freedom);

/// Holm's step-down adjustment (1979) of a family of p values, in their order: the k-th smallest of
/// m is multiplied by m - k + 1, never falls below the one before it, and ends at 1. The family is
/// every plan that was tried, not only those one would like to show.
std::vector<double> holm_adjusted(std::span<const double> p);
/// Which survive: adjusted p <= alpha, so that the chance of even one false claim is at most alpha.
std::vector<bool> holm_survivors(std::span<const double> p, double alpha);

/// Indices of items: what a search chooses on, and what the choice is reported on.
struct Split {
    std::vector<size_t> selection;
    std::vector<size_t> validation;
    bool operator==(const Split&) const = default;
};

/// Whether an item belongs to the validation part. Asks only the item's id and the seed, so an item
/// stays where it is when others are added, and with a larger fraction none leaves the part.
bool in_validation(std::string_view id, double fraction, uint64_t seed);
/// Throws Error unless 0 <= fraction <= 1. Either part may be empty when items are few.
Split split_items(std::span<const std::string> ids, double fraction, uint64_t seed);

/// A place for each score, 1 for the best: 1 + how many are better by more than one standard error
/// (the larger of the two). Scores within it share a place, so many may have place 1.
std::vector<size_t> places(std::span<const Score> scores, const Measure& measure);

}  // namespace pleat
