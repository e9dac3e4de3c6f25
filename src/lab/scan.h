#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lab/journal.h"
#include "lab/report.h"
#include "lab/scorer.h"
#include "lab/statistics.h"
#include "lab/workload.h"

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
/// Rungs with thirds: of all plans a third goes on, three times the items each. As few as keep the
/// work within `budget` of scoring all plans on all items; 1 = everything at once.
std::vector<Rung> halving_rungs(size_t n_sequences, double budget);
/// What the rungs cost, as a fraction of scoring all plans on all items.
double work_of(const std::vector<Rung>& rungs);

struct ScanOptions {
    int32_t max_block = 8;
    int32_t stride = 1;
    bool boundary = false;
    double budget = 1.0;
    double validation = 0.5;  ///< of the sequences
    uint64_t seed = 1;
    size_t n_winners = 10;  ///< re-scored on the validation part
    double alpha = 0.05;    ///< of Holm's correction
    /// The measure that plans are ranked by, as Workload names it; empty: right answers where there
    /// are probes, else the negative log-likelihood.
    std::string rank_by = {};
};

/// One block after the scan.
struct ScannedPlan {
    ScanBlock block;
    std::string canonical;
    std::vector<ItemScores> selection = {};   ///< by measure; fewer items where it stopped early
    std::vector<ItemScores> validation = {};  ///< winners only
    size_t rung = 0;                          ///< the last one it took part in
    size_t n_sequences = 0;                   ///< of the selection part that it has seen
};

struct ScanResult {
    bool complete = true;  ///< false: stopped, to be resumed from the journal
    ScanRange range;
    std::vector<Measure> measures = {};
    size_t rank_measure = 0;
    std::vector<Rung> rungs = {};
    Split split = {};
    ScannedPlan identity = {};
    std::vector<ScannedPlan> plans = {};  ///< best first
};

/// Scores every block of the range against the identity plan. Results are appended to the journal
/// as they come, and what it holds already is not computed again.
class Scan {
  public:
    Scan(std::shared_ptr<Model> model, const Workload& workload, SweepSettings settings,
         ScanOptions options);

    /// What the scan's results depend on, for the journal.
    std::vector<std::pair<std::string, std::string>> settings() const;

    /// Fraction of the work of a stage ("coarse, rung 1 of 3"); false stops.
    using Progress = std::function<bool(const std::string& stage, double fraction)>;
    ScanResult run(Journal* journal, const Progress& progress = {});

    /// The result as rows with costs, differences, intervals and Holm's marks.
    ReportData report(const ScanResult& result, const CacheSettings& cache) const;

  private:
    struct Candidates;
    bool run_rungs(Candidates& candidates, const std::vector<Rung>& rungs, const std::string& stage,
                   Journal* journal, const Progress& progress);
    struct Part;
    bool score(std::vector<ScannedPlan*> plans, ScannedPlan& identity, const Part& part,
               Journal* journal, const std::function<bool(double)>& progress);

    std::shared_ptr<Model> model_;
    const Workload& workload_;
    Scorer scorer_;
    ScanOptions options_;
    std::vector<size_t> order_;  ///< selection sequences in the order in which rungs take them
    Split split_;
    size_t rank_measure_ = 0;
};

}  // namespace pleat
