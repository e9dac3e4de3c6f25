#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include "lab/scan.h"

namespace pleat {

ScanRange scan_range(int32_t n_layer, bool boundary) {
    const int32_t left_out = std::max(3, n_layer / 8);
    if (boundary) return {.begin = 0, .end = n_layer};
    // Fewer than four layers in the middle are no choice.
    if (n_layer - 2 * left_out < 4) return {.begin = 0, .end = n_layer, .whole = true};
    return {.begin = left_out, .end = n_layer - left_out};
}

std::vector<ScanBlock> scan_blocks(const ScanRange& range, int32_t max_block, int32_t stride) {
    std::vector<ScanBlock> blocks;
    for (int32_t end = range.begin + stride; end <= range.end; end += stride) {
        for (int32_t begin = range.begin; begin < end; begin += stride) {
            if (end - begin <= max_block) blocks.push_back({begin, end});
        }
    }
    return blocks;
}

std::vector<ScanBlock> blocks_around(const ScanBlock& block, const ScanRange& range,
                                     int32_t max_block, int32_t stride) {
    std::set<ScanBlock> around;
    for (int32_t begin = block.begin - stride + 1; begin < block.begin + stride; ++begin) {
        for (int32_t end = block.end - stride + 1; end < block.end + stride; ++end) {
            if (begin < range.begin || end > range.end || begin >= end) continue;
            if (end - begin <= max_block) around.insert({begin, end});
        }
    }
    return {around.begin(), around.end()};
}

namespace {

constexpr double share_kept = 0.7;
/// What a rung sees more of than the one before.
constexpr double fastest_growth = 1.75;
/// The last rung is where the ten best are told from the rest.
constexpr size_t least_in_rung = 14;

/// By rung.
std::vector<double> plans_alive(size_t n_plans) {
    std::vector<double> alive{static_cast<double>(n_plans)};
    while (alive.back() > least_in_rung) {
        const double next = std::ceil(alive.back() * share_kept);
        // A rung of hardly more than the last one's would tell nothing.
        alive.push_back(next < 1.25 * least_in_rung ? least_in_rung : next);
    }
    return alive;
}

/// Fractions of what the last of n rungs sees.
std::vector<double> growing(size_t n, double growth) {
    std::vector<double> seen(n, 1.0);
    for (size_t r = n - 1; r > 0; --r) seen[r - 1] = seen[r] / growth;
    return seen;
}

/// In plans on all items, when rungs see these fractions of them.
double work_of(std::span<const double> alive, std::span<const double> seen) {
    double work = alive[0] * seen[0];
    for (size_t r = 1; r < alive.size(); ++r) work += alive[r] * (seen[r] - seen[r - 1]);
    return work;
}

/// What rungs see of all items when they may cost so much.
std::vector<double> fractions(std::span<const double> alive, double work) {
    double low = 1.0;
    double high = fastest_growth;
    std::vector<double> seen = growing(alive.size(), high);
    const double scale = work / work_of(alive, seen);
    if (scale <= 1.0) {
        for (double& fraction : seen) fraction *= scale;
        return seen;
    }
    for (int i = 0; i < 50; ++i) {  // faster growth costs less
        const double growth = (low + high) / 2;
        (work_of(alive, growing(alive.size(), growth)) > work ? low : high) = growth;
    }
    return growing(alive.size(), high);
}

}  // namespace

std::vector<Rung> halving_rungs(size_t n_sequences, size_t n_plans, double budget) {
    if (budget >= 1.0 || n_sequences == 0 || n_plans == 0) return {{.n_sequences = n_sequences}};
    const std::vector<double> alive = plans_alive(n_plans);
    // The identity plan sees everything first.
    const double all = budget * static_cast<double>(n_plans);
    const double work = std::max(all - 1.0, all / 2);
    const std::vector<double> seen = fractions(alive, work);
    const auto n = static_cast<double>(n_sequences);
    std::vector<Rung> rungs;
    double left = work * n;  // in sequences under one plan
    size_t before = 0;
    for (size_t r = 0; r < alive.size(); ++r) {
        const bool last = r + 1 == alive.size();
        // Rounding down leaves something to the last one.
        const double wanted = last ? static_cast<double>(before) + left / alive[r] : seen[r] * n;
        const auto sequences = std::clamp(static_cast<size_t>(wanted + 1e-9),
                                          std::max<size_t>(before, 1), n_sequences);
        const double keep = last ? 1.0 : alive[r + 1] / alive[r];
        left -= alive[r] * static_cast<double>(sequences - before);
        if (sequences == before) {
            rungs.back().keep *= keep;
        } else {
            rungs.push_back({.n_sequences = sequences, .keep = keep});
        }
        before = sequences;
    }
    rungs.back().keep = 1.0;
    return rungs;
}

std::vector<size_t> steps_of(const std::vector<Rung>& rungs) {
    std::vector<size_t> steps;
    for (const Rung& rung : rungs) steps.push_back(rung.n_sequences);
    return steps;
}

}  // namespace pleat
