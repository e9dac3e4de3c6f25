#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lab/profile.h"
#include "lab/scores.h"

namespace pleat {

/// One measure of one plan; what was not measured is absent.
struct ReportScore {
    std::optional<Score> selection = {};
    std::optional<Difference> difference = {};  ///< to the identity plan, selection items, paired
    std::optional<Score> validation = {};
    std::optional<Difference> validation_difference = {};
    /// After Holm's correction; the report's notes say over which plans.
    std::optional<bool> survives = {};
    bool operator==(const ReportScore&) const = default;
};

struct ReportMeasure {
    Measure measure;
    /// "nats per token" (never below 0), "0 to 1"; empty: not known, and any number may be.
    std::string unit = {};
    ReportScore identity = {};  ///< of the identity plan: selection and validation
    size_t n_selection = 0;     ///< items
    size_t n_validation = 0;
    bool operator==(const ReportMeasure&) const = default;
};

/// One plan that was tried; the identity plan is no row.
struct ReportRow {
    std::string flag = {};              ///< what to write to get the plan: --repeat-layers "26,34"
    std::string canonical = {};         ///< LayerPlan::canonical()
    std::optional<int32_t> begin = {};  ///< of a single repeated block [begin, end): its cell
    std::optional<int32_t> end = {};
    double compute_ratio = 1.0;            ///< FLOPs per token, to the identity plan
    double read_ratio = 1.0;               ///< weight bytes read per token
    double kv_ratio = 1.0;                 ///< cache bytes; 1 where the identity has none
    std::vector<ReportScore> scores = {};  ///< in the order of the measures
    bool in_balanced = true;               ///< false: a plan that the balanced score is not about
    /// Why the row does not compare with the others, as "stopped early: 8 of 24 items"; empty: it
    /// does. A row set aside is shown, on no front, and never as the best.
    std::string set_aside = {};
    bool operator==(const ReportRow&) const = default;
};

/// Everything a report shows. The page and the JSON are made of this alone.
struct ReportData {
    std::string title;
    std::string model;  ///< for people: name, architecture, types
    std::string command = {};
    int32_t n_layer = 0;
    size_t n_plans_tried = 0;
    double confidence = 0.95;  ///< of all intervals
    std::vector<ReportMeasure> measures = {};
    std::vector<ReportRow> rows = {};
    std::vector<std::pair<std::string, std::string>> settings = {};
    std::vector<std::string> notes = {};
    bool operator==(const ReportData&) const = default;
};

/// Whether the measure's name begins with a word of RYS ("math", "eq"), as "eq_16" does.
bool is_about(const Measure& measure, std::string_view word);

/// RYS's "balanced" score: for each measure a row's difference to the identity plan, so turned that
/// more is better; less the mean of the differences of all rows, divided by their spread
/// (population standard deviation; below 1e-12 it counts as 1); then the sum over measures. Depends
/// on all rows that take part: those in_balanced and not set aside that have all measures.
///
/// The measures are math and eq where results of RYS have just one of each. Else those in which a
/// plan can be better than the identity plan: kl and top1 say how like it a plan is, parsed,
/// length_ok, cut and confidence how an answer looks. There is no such score unless they are about
/// two things (texts, kinds of probes) or more.
struct Balanced {
    std::vector<size_t> measures = {};             ///< that it sums; empty: there is no such score
    std::vector<std::optional<double>> rows = {};  ///< none: takes no part
    double identity = 0.0;                         ///< the same formula for a difference of 0
};
Balanced balanced_scores(const ReportData& data);

/// A map of single repeated blocks: what a measure (or, after the last measure, the balanced score)
/// gave for the rows that are such blocks.
struct HeatmapCell {
    size_t row = 0;  ///< of ReportData
    double value = 0.0;
    double gain = 0.0;  ///< difference to the identity plan, more is better
};
struct Heatmap {
    std::string name;  ///< of the measure, or "balanced"
    double identity = 0.0;
    bool higher_is_better = true;
    /// The gain, and the loss, at which colours end: the best gain is always seen in full, and
    /// losses up to the median one, but not beyond four times the best gain, so that a few broken
    /// plans do not take all colours. Nor beyond what the measure can be: 0 where it can get no
    /// better, or no worse, than the identity's value.
    double scale_up = 1.0;
    double scale_down = 1.0;
    std::vector<HeatmapCell> cells;  ///< finite ones
};
/// One for each measure that has cells, and the balanced one where there is such a score.
std::vector<Heatmap> heatmaps(const ReportData& data);

/// Indices of the rows that neither another row nor the identity plan beats: none is at least as
/// good in this measure and as cheap, and better in one of the two. By rising cost. Rows without
/// the measure, and those set aside, take no part.
std::vector<size_t> pareto_front(const ReportData& data, size_t measure,
                                 double ReportRow::*cost = &ReportRow::compute_ratio);

/// The data as JSON, with what was computed of it; numbers that are not finite are left out.
std::string report_json(const ReportData& data);

/// One HTML page that needs no other file and no network.
std::string report_html(const ReportData& data);

/// Writes `stem`.json and `stem`.html, each at once. Throws Error with the path and the reason.
void write_report(const std::string& stem, const ReportData& data);

}  // namespace pleat
