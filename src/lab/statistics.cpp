#include "lab/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "lab/random.h"

namespace pleat {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

void check_items(const ItemScores& items) {
    if (items.sum.size() != items.weight.size()) {
        fail("{} scores have {} weights; every item has one", items.sum.size(),
             items.weight.size());
    }
    if (items.sum.empty()) fail("a mean of no items; at least one is needed");
    for (size_t i = 0; i < items.size(); ++i) {
        if (!std::isfinite(items.sum[i])) {
            fail("the score of item {} is {}, which no mean can hold", i, items.sum[i]);
        }
        if (!std::isfinite(items.weight[i]) || items.weight[i] < 0) {
            fail("the weight of item {} is {}; it counts tokens, so it is >= 0", i,
                 items.weight[i]);
        }
    }
}

double total(std::span<const double> values) {
    return std::accumulate(values.begin(), values.end(), 0.0);
}

void check_scores(std::span<const Score> scores) {
    for (size_t i = 0; i < scores.size(); ++i) {
        // An infinite error is what one item has.
        if (std::isfinite(scores[i].value) && scores[i].error >= 0) continue;
        fail("score {} is {} +/- {}; a place needs a number and an error >= 0", i, scores[i].value,
             scores[i].error);
    }
}

void check_family(std::span<const double> p) {
    for (size_t i = 0; i < p.size(); ++i) {
        if (!(p[i] >= 0 && p[i] <= 1)) fail("p value {} is {}; it is in [0, 1]", i, p[i]);
    }
}

void check_fraction(double fraction) {
    if (fraction >= 0 && fraction <= 1) return;
    fail("the fraction of items for validation is {}; it is in [0, 1]", fraction);
}

/// An item as a resample takes it: both numbers in one place.
struct Drawn {
    double sum;
    double weight;
};

/// Means of resamples, ascending. Those that drew weights of 0 only have no mean and are left out.
std::vector<double> resampled_means(const ItemScores& items, const BootstrapOptions& options) {
    std::vector<Drawn> drawn;
    drawn.reserve(items.size());
    for (size_t i = 0; i < items.size(); ++i) drawn.push_back({items.sum[i], items.weight[i]});
    const auto n = static_cast<uint32_t>(drawn.size());
    SplitMix64 random(options.seed);
    std::vector<double> means;
    means.reserve(options.n_resamples);
    for (size_t b = 0; b < options.n_resamples; ++b) {
        double sum = 0.0;
        double weight = 0.0;
        for (uint32_t i = 0; i < n; ++i) {
            const Drawn& item = drawn[random.below(n)];
            sum += item.sum;
            weight += item.weight;
        }
        if (weight > 0) means.push_back(sum / weight);
    }
    std::ranges::sort(means);
    return means;
}

/// The continued fraction of the incomplete beta function by Lentz's method (DLMF 8.17.22).
double beta_fraction(double a, double b, double x) {
    constexpr double tiny = 1e-300;
    const auto away_from_zero = [](double v) { return std::abs(v) < tiny ? tiny : v; };
    double c = 1.0;
    double d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    double product = d;
    for (int m = 1; m <= 10000; ++m) {
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        d = 1.0 / away_from_zero(1.0 + even * d);
        c = away_from_zero(1.0 + even / c);
        product *= d * c;
        const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1.0 / away_from_zero(1.0 + odd * d);
        c = away_from_zero(1.0 + odd / c);
        product *= d * c;
        if (std::abs(d * c - 1.0) < 1e-15) break;
    }
    return product;
}

/// I_x(a, b), where `y` is 1 - x: given too, because it may be too small to be told from x.
double incomplete_beta(double a, double b, double x, double y) {
    if (x <= 0) return 0.0;
    if (y <= 0) return 1.0;
    const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                  a * std::log(x) + b * std::log(y));
    // The fraction converges fast on this side of the mean only.
    if (x < (a + 1.0) / (a + b + 2.0)) return front * beta_fraction(a, b, x) / a;
    return 1.0 - front * beta_fraction(b, a, y) / b;
}

double p_value(const PairedDifference& d) {
    if (d.n_changed == 0 || std::isinf(d.error)) return 1.0;
    const double least = std::exp2(1.0 - static_cast<double>(d.n_changed));
    if (d.error == 0) return d.mean == 0 ? 1.0 : std::min(least, 1.0);
    const double p = student_two_sided(d.mean / d.error, static_cast<double>(d.n_items - 1));
    return std::min(std::max(p, least), 1.0);
}

}  // namespace

Score mean_of(const ItemScores& items) {
    check_items(items);
    const double weight = total(items.weight);
    if (weight <= 0) fail("the weights of all {} items are 0, so they have no mean", items.size());
    const double mean = total(items.sum) / weight;
    if (items.size() == 1) return {mean, infinity};
    double squares = 0.0;
    for (size_t i = 0; i < items.size(); ++i) {
        const double residual = items.sum[i] - mean * items.weight[i];
        squares += residual * residual;
    }
    const auto n = static_cast<double>(items.size());
    return {mean, std::sqrt(n / (n - 1) * squares) / weight};
}

Score perplexity_of(const Score& mean_nll) {
    if (!std::isfinite(mean_nll.value) || !(mean_nll.error >= 0)) {
        fail("a mean of {} +/- {} nats has no perplexity", mean_nll.value, mean_nll.error);
    }
    const double value = std::exp(mean_nll.value);
    return {value, value * mean_nll.error};
}

ItemScores part_of(const ItemScores& items, std::span<const size_t> indices) {
    ItemScores part;
    part.sum.reserve(indices.size());
    part.weight.reserve(indices.size());
    for (const size_t i : indices) {
        if (i >= items.sum.size() || i >= items.weight.size()) {
            fail("item {} of {} was asked for; they count from 0", i, items.size());
        }
        part.sum.push_back(items.sum[i]);
        part.weight.push_back(items.weight[i]);
    }
    return part;
}

PairedDifference paired_difference(const ItemScores& plan, const ItemScores& identity,
                                   const BootstrapOptions& options) {
    check_items(plan);
    check_items(identity);
    if (plan.weight != identity.weight) {
        fail(
            "the plan's {} items and the identity plan's {} have other weights, so they are not "
            "the same items",
            plan.size(), identity.size());
    }
    if (options.n_resamples == 0 || !(options.level > 0 && options.level < 1)) {
        fail("an interval of level {} from {} resamples; it needs 0 < level < 1 and some resamples",
             options.level, options.n_resamples);
    }
    if (plan.size() > std::numeric_limits<uint32_t>::max()) {
        fail("{} items are too many to resample", plan.size());
    }
    PairedDifference out;
    ItemScores difference = plan;
    for (size_t i = 0; i < plan.size(); ++i) {
        difference.sum[i] -= identity.sum[i];
        if (difference.sum[i] != 0) ++out.n_changed;
    }
    const Score mean = mean_of(difference);
    out.mean = mean.value;
    out.error = mean.error;
    out.n_items = plan.size();
    out.p = p_value(out);
    if (out.n_items == 1) {
        out.low = -infinity;
        out.high = infinity;
        return out;
    }
    const std::vector<double> means = resampled_means(difference, options);
    if (means.empty()) fail("no resample drew an item of weight > 0; there are too few of them");
    const auto n = static_cast<double>(means.size());
    const auto k = static_cast<size_t>(std::floor((n + 1) * (1 - options.level) / 2));
    const size_t outside = std::min(std::max<size_t>(k, 1) - 1, (means.size() - 1) / 2);
    out.low = means[outside];
    out.high = means[means.size() - 1 - outside];
    return out;
}

double expected_mean(const ItemScores& plan, const ItemScores& identity) {
    if (plan.size() >= identity.size()) return mean_of(plan).value;
    constexpr size_t least_items = 4;  // for a slope
    constexpr double towards_zero = 1.1;
    const double weight = total(plan.weight);
    const double plan_mean = mean_of(plan).value;
    ItemScores seen = identity;
    seen.sum.resize(plan.size());
    seen.weight.resize(plan.size());
    const double seen_mean = mean_of(seen).value;
    const double missed = mean_of(identity).value - seen_mean;
    double variance = 0.0;
    double covariance = 0.0;
    for (size_t i = 0; i < plan.size(); ++i) {
        const double w = plan.weight[i];
        if (w <= 0.0) continue;
        const double x = seen.sum[i] / w - seen_mean;
        const double d = (plan.sum[i] - seen.sum[i]) / w - (plan_mean - seen_mean);
        variance += w * x * x;
        covariance += w * x * d;
    }
    const bool tells = plan.size() >= least_items && variance > 1e-12 * weight;
    const double slope = tells ? covariance / (towards_zero * variance) : 0.0;
    return plan_mean + (1.0 + slope) * missed;
}

double student_two_sided(double t, double freedom) {
    if (std::isnan(t) || !std::isfinite(freedom) || !(freedom > 0)) {
        fail("t = {} with {} degrees of freedom has no p value", t, freedom);
    }
    if (std::isinf(t)) return 0.0;
    const double square = t * t;
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + square),
                           square / (freedom + square));
}

std::vector<double> holm_adjusted(std::span<const double> p) {
    check_family(p);
    std::vector<size_t> order(p.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, {}, [&](size_t i) { return p[i]; });
    std::vector<double> adjusted(p.size());
    double running = 0.0;
    for (size_t k = 0; k < order.size(); ++k) {
        const double factor = static_cast<double>(p.size() - k);
        running = std::max(running, std::min(1.0, factor * p[order[k]]));
        adjusted[order[k]] = running;
    }
    return adjusted;
}

std::vector<bool> holm_survivors(std::span<const double> p, double alpha) {
    if (!(alpha > 0 && alpha < 1)) fail("alpha is {}; it is in (0, 1)", alpha);
    std::vector<bool> survivors;
    survivors.reserve(p.size());
    for (const double adjusted : holm_adjusted(p)) survivors.push_back(adjusted <= alpha);
    return survivors;
}

bool in_validation(std::string_view id, double fraction, uint64_t seed) {
    check_fraction(fraction);
    uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a, whose last bytes alone would spread too little
    for (const char c : id) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    }
    hash = SplitMix64::mix(hash ^ SplitMix64::mix(seed + 0x9e3779b97f4a7c15U));
    return static_cast<double>(hash >> 11) * 0x1p-53 < fraction;
}

Split split_items(std::span<const std::string> ids, double fraction, uint64_t seed) {
    check_fraction(fraction);
    Split split;
    for (size_t i = 0; i < ids.size(); ++i) {
        (in_validation(ids[i], fraction, seed) ? split.validation : split.selection).push_back(i);
    }
    return split;
}

std::vector<size_t> places(std::span<const Score> scores, const Measure& measure) {
    check_scores(scores);
    const double sign = measure.higher_is_better ? 1.0 : -1.0;
    std::vector<size_t> out(scores.size(), 1);
    for (size_t i = 0; i < scores.size(); ++i) {
        for (const Score& other : scores) {
            const double lead = sign * (other.value - scores[i].value);
            if (lead > std::max(other.error, scores[i].error)) ++out[i];
        }
    }
    return out;
}

}  // namespace pleat
