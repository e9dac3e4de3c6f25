#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lab/report.h"
#include "lab/trials.h"
#include "plan/cost.h"
#include "plan/plan.h"
#include "plan/shape.h"

namespace pleat {

/// A block of layers [begin, end) that is run once more.
struct ScanBlock {
    int32_t begin = 0;
    int32_t end = 0;
    auto operator<=>(const ScanBlock&) const = default;
};

struct ScanRange {
    int32_t begin = 0;   ///< first layer that a block may hold
    int32_t end = 0;     ///< one past the last
    bool whole = false;  ///< the model is too small to leave layers out
};

/// Layers that blocks are made of: without the boundary layers (the first and last max(3,
/// n_layer / 8)), unless those are asked for or too few would be left.
ScanRange scan_range(int32_t n_layer, bool boundary);

/// Every block of at most max_block layers within the range whose ends are multiples of `stride`
/// from the range's begin; by end, then by begin.
std::vector<ScanBlock> scan_blocks(const ScanRange& range, int32_t max_block, int32_t stride);
/// What lies around a block of a coarse pass: both ends moved by less than `stride`.
std::vector<ScanBlock> blocks_around(const ScanBlock& block, const ScanRange& range,
                                     int32_t max_block, int32_t stride);

/// One step of successive halving (Jamieson and Talwalkar 2016): so many plans see so many items.
struct Rung {
    size_t n_sequences = 0;  ///< of the selection part, those of the rungs before included
    double keep = 1.0;       ///< fraction of the plans that go on
    bool operator==(const Rung&) const = default;
};
/// Rungs for so many plans: about seven in ten go on, to 1.75 times the items or, where a large
/// budget leads to all of them sooner, to less than that; the last 14 share what is left. `budget`
/// is a fraction of scoring all plans on all items, and includes the identity plan on all of them;
/// 1 = everything at once. The last rung need not see all items.
std::vector<Rung> halving_rungs(size_t n_sequences, size_t n_plans, double budget);

/// Where the rungs end, for Trials.
std::vector<size_t> steps_of(const std::vector<Rung>& rungs);

struct ScanOptions {
    int32_t max_block = 8;
    int32_t stride = 1;
    bool boundary = false;
    double budget = 1.0;
    uint64_t seed = 1;      ///< of the intervals
    size_t n_winners = 10;  ///< re-scored on the validation part
    double alpha = 0.05;    ///< of Holm's correction
    /// The measure that plans are ranked by, as Workload names it; empty: right answers where there
    /// are probes, else the negative log-likelihood.
    std::string rank_by = {};
};

/// One block after the scan; Trials has its scores.
struct ScannedPlan {
    ScanBlock block;
    LayerPlan plan;
    size_t rung = 0;  ///< the last one it took part in
};

struct ScanResult {
    bool complete = true;  ///< false: stopped, to be resumed from the journal
    ScanRange range;
    size_t rank_measure = 0;
    std::vector<Rung> rungs = {};
    std::vector<ScannedPlan> plans = {};  ///< best first
};

/// Scores every block of the range against the identity plan.
class Scan {
  public:
    /// `shape` and `trials` are borrowed; the trials have the steps of `rungs`. Throws Error when
    /// no measure has the name to rank by, or no block is within the range.
    Scan(const ModelShape& shape, Trials& trials, std::vector<Rung> rungs, ScanOptions options);

    /// What decides which plans are scored on how much, for a report.
    std::vector<std::pair<std::string, std::string>> settings() const;

    /// Fraction of the work of a stage ("coarse, rung 1 of 3"); false stops.
    using Progress = std::function<bool(const std::string& stage, double fraction)>;
    ScanResult run(const Progress& progress = {});

    /// The result as rows with costs, differences, intervals and Holm's marks.
    ReportData report(const ScanResult& result, const CacheSettings& cache) const;

  private:
    std::optional<std::vector<ScannedPlan>> run_rungs(const std::vector<ScanBlock>& blocks,
                                                      const std::string& stage,
                                                      const Progress& progress);
    bool score_winners(const std::vector<ScannedPlan>& plans, const Progress& progress);
    double rank_value(const LayerPlan& plan) const;
    bool ranks_before(double a, double b) const;
    ReportMeasure report_measure(size_t measure) const;
    ReportScore report_score(const LayerPlan& plan, size_t measure) const;
    void mark_survivors(const ScanResult& result, ReportData& data) const;
    std::vector<std::string> notes(const ScanResult& result) const;

    const ModelShape& shape_;
    Trials& trials_;
    std::vector<Rung> rungs_;
    ScanOptions options_;
    LayerPlan identity_;
    ScanRange range_;
    size_t rank_measure_ = 0;
};

}  // namespace pleat
