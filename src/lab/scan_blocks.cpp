#include <algorithm>
#include <cmath>
#include <set>

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

/// As few rungs as keep the work within the budget, where a rung has 1/factor of the next one's
/// items and lets 1/factor of the plans go on.
std::vector<Rung> rungs_of(size_t n_sequences, double budget, size_t factor) {
    std::vector<Rung> rungs{{.n_sequences = n_sequences}};
    while (work_of(rungs) > budget) {
        const size_t first = rungs.front().n_sequences;
        if (first < factor) break;  // there is nothing left to cut
        rungs.insert(rungs.begin(), {.n_sequences = (first + factor - 1) / factor,
                                     .keep = 1.0 / static_cast<double>(factor)});
    }
    return rungs;
}

}  // namespace

std::vector<Rung> halving_rungs(size_t n_sequences, double budget) {
    const std::vector<Rung> thirds = rungs_of(n_sequences, budget, 3);
    const std::vector<Rung> halves = rungs_of(n_sequences, budget, 2);
    const double a = work_of(thirds);
    const double b = work_of(halves);
    const bool both_within = a <= budget && b <= budget;
    // Within the budget more work means fewer good plans lost.
    return (both_within ? a >= b : a <= b) ? thirds : halves;
}

std::vector<size_t> steps_of(const std::vector<Rung>& rungs) {
    std::vector<size_t> steps;
    for (const Rung& rung : rungs) steps.push_back(rung.n_sequences);
    return steps;
}

double work_of(const std::vector<Rung>& rungs) {
    double work = 0.0;
    double plans = 1.0;
    double seen = 0.0;
    for (const Rung& rung : rungs) {
        const auto n = static_cast<double>(rung.n_sequences);
        work += plans * (n - seen);
        seen = n;
        plans *= rung.keep;
    }
    return seen == 0.0 ? 0.0 : work / seen;
}

}  // namespace pleat
