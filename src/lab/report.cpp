#include "lab/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "lab/json.h"
#include "lab/report_page.h"
#include "lab/text_output.h"

namespace pleat {
namespace {

using nlohmann::ordered_json;

constexpr int report_schema = 1;

std::optional<double> selection_of(const ReportRow& row, size_t measure) {
    if (measure >= row.scores.size() || !row.scores[measure].selection) return std::nullopt;
    const double value = row.scores[measure].selection->value;
    if (!std::isfinite(value)) return std::nullopt;
    return value;
}

std::optional<double> identity_of(const ReportMeasure& measure) {
    if (!measure.identity.selection || !std::isfinite(measure.identity.selection->value)) {
        return std::nullopt;
    }
    return measure.identity.selection->value;
}

/// Turned so that more is better.
double gain(double value, double identity, bool higher_is_better) {
    return higher_is_better ? value - identity : identity - value;
}

/// What a measure can be, as far as its unit says.
struct Range {
    double low = -std::numeric_limits<double>::infinity();
    double high = std::numeric_limits<double>::infinity();
};

Range range_of(const ReportMeasure& measure) {
    if (measure.unit == "nats per token") return {.low = 0.0};
    if (measure.unit == "0 to 1") return {.low = 0.0, .high = 1.0};
    return {};
}

void clamp_scales(Heatmap& map, const Range& range) {
    const double below = std::max(0.0, map.identity - range.low);
    const double above = std::max(0.0, range.high - map.identity);
    map.scale_up = std::min(map.scale_up, map.higher_is_better ? above : below);
    map.scale_down = std::min(map.scale_down, map.higher_is_better ? below : above);
}

/// "exact" of "exact:logic".
std::string_view kind_of_measure(const Measure& measure) {
    return std::string_view(measure.name).substr(0, measure.name.find(':'));
}

/// What it is measured on: a kind of probes, a text; itself where the name does not say.
std::string_view subject_of(const Measure& measure) {
    const std::string_view name = measure.name;
    const size_t colon = name.find(':');
    return colon == std::string_view::npos ? name : name.substr(colon + 1);
}

/// Can a plan be better in it than the identity plan?
bool is_quality(const Measure& measure) {
    constexpr std::array<std::string_view, 6> others{"kl",        "top1", "parsed",
                                                     "length_ok", "cut",  "confidence"};
    return std::ranges::find(others, kind_of_measure(measure)) == others.end();
}

std::vector<size_t> balanced_measures(const ReportData& data) {
    std::vector<size_t> math;
    std::vector<size_t> eq;
    std::vector<size_t> quality;
    std::set<std::string_view> subjects;
    for (size_t m = 0; m < data.measures.size(); ++m) {
        const Measure& measure = data.measures[m].measure;
        if (is_about(measure, "math")) math.push_back(m);
        if (is_about(measure, "eq")) eq.push_back(m);
        if (!is_quality(measure)) continue;
        quality.push_back(m);
        subjects.insert(subject_of(measure));
    }
    if (math.size() == 1 && eq.size() == 1) return {math.front(), eq.front()};
    if (subjects.size() < 2) return {};
    return quality;
}

void set_scales(Heatmap& map, const ReportData& data) {
    std::vector<double> losses;
    double best = 0.0;
    for (const HeatmapCell& cell : map.cells) {
        if (data.rows[cell.row].set_aside.empty()) best = std::max(best, cell.gain);
        if (cell.gain < 0.0) losses.push_back(-cell.gain);
    }
    double loss = best;
    if (!losses.empty()) {
        const auto middle = losses.begin() + static_cast<std::ptrdiff_t>(losses.size() / 2);
        std::ranges::nth_element(losses, middle);
        loss = *middle;
    }
    if (best > 0.0) loss = std::clamp(loss, best, 4 * best);
    if (loss == 0.0) return;  // everything is like the identity plan
    map.scale_up = best > 0.0 ? best : loss;
    map.scale_down = loss;
}

bool is_cell(const ReportRow& row) { return row.begin && row.end; }

ordered_json report_score_json(const ReportScore& it) {
    ordered_json json = ordered_json::object();
    if (it.selection) json["selection"] = score_json(*it.selection);
    if (it.difference) json["difference"] = difference_json(*it.difference);
    if (it.validation) json["validation"] = score_json(*it.validation);
    if (it.validation_difference) {
        json["validation_difference"] = difference_json(*it.validation_difference);
    }
    if (it.survives) json["survives"] = *it.survives;
    return json;
}

ordered_json rows_json(const ReportData& data) {
    ordered_json rows = ordered_json::array();
    const Balanced balanced = balanced_scores(data);
    for (size_t i = 0; i < data.rows.size(); ++i) {
        const ReportRow& it = data.rows[i];
        ordered_json row = {{"flag", it.flag}, {"canonical", it.canonical}};
        if (is_cell(it)) {
            row["begin"] = *it.begin;
            row["end"] = *it.end;
        }
        add_finite(row, "compute_ratio", it.compute_ratio);
        add_finite(row, "read_ratio", it.read_ratio);
        add_finite(row, "kv_ratio", it.kv_ratio);
        if (!it.set_aside.empty()) row["set_aside"] = it.set_aside;
        if (!it.in_balanced) row["in_balanced"] = false;
        add_finite(row, "balanced", balanced.rows[i]);
        row["scores"] = ordered_json::array();
        for (const ReportScore& score : it.scores) {
            row["scores"].push_back(report_score_json(score));
        }
        rows.push_back(std::move(row));
    }
    return rows;
}

ordered_json heatmaps_json(const ReportData& data) {
    ordered_json maps = ordered_json::array();
    for (const Heatmap& it : heatmaps(data)) {
        ordered_json cells = ordered_json::array();
        for (const HeatmapCell& cell : it.cells) {
            cells.push_back({{"row", cell.row}, {"value", cell.value}, {"gain", cell.gain}});
        }
        maps.push_back({{"name", it.name},
                        {"identity", it.identity},
                        {"higher_is_better", it.higher_is_better},
                        {"scale_up", it.scale_up},
                        {"scale_down", it.scale_down},
                        {"cells", std::move(cells)}});
    }
    return maps;
}

ordered_json fronts_json(const ReportData& data) {
    ordered_json fronts = ordered_json::array();
    for (size_t m = 0; m < data.measures.size(); ++m) {
        fronts.push_back({{"measure", data.measures[m].measure.name},
                          {"compute_ratio", pareto_front(data, m, &ReportRow::compute_ratio)},
                          {"read_ratio", pareto_front(data, m, &ReportRow::read_ratio)},
                          {"kv_ratio", pareto_front(data, m, &ReportRow::kv_ratio)}});
    }
    return fronts;
}

std::vector<std::string> names_of(const ReportData& data, const std::vector<size_t>& measures) {
    std::vector<std::string> names;
    for (const size_t m : measures) names.push_back(data.measures[m].measure.name);
    return names;
}

ordered_json as_json(const ReportData& data) {
    ordered_json measures = ordered_json::array();
    for (const ReportMeasure& it : data.measures) {
        measures.push_back({{"name", it.measure.name},
                            {"higher_is_better", it.measure.higher_is_better},
                            {"unit", it.unit},
                            {"n_selection", it.n_selection},
                            {"n_validation", it.n_validation},
                            {"identity", report_score_json(it.identity)}});
    }
    ordered_json settings = ordered_json::array();
    for (const auto& [name, value] : data.settings) {
        settings.push_back({{"name", name}, {"value", value}});
    }
    return {{"pleat_report", report_schema},
            {"title", data.title},
            {"model", data.model},
            {"command", data.command},
            {"n_layer", data.n_layer},
            {"n_plans_tried", data.n_plans_tried},
            {"confidence", data.confidence},
            {"balanced_measures", names_of(data, balanced_scores(data).measures)},
            {"measures", std::move(measures)},
            {"rows", rows_json(data)},
            {"heatmaps", heatmaps_json(data)},
            {"pareto_fronts", fronts_json(data)},
            {"settings", std::move(settings)},
            {"notes", data.notes}};
}

std::string html_text(std::string_view text) {
    std::string out;
    for (const char c : text) {
        switch (c) {
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '&':
                out += "&amp;";
                break;
            default:
                out += c;
        }
    }
    return out;
}

/// JSON may hold any text; inside a script element `</script>` and `<!--` would end or change it.
std::string json_for_script(const ordered_json& json) {
    std::string out;
    for (const char c : dump_json(json)) {
        if (c == '<') {
            out += "\\u003c";
        } else {
            out += c;
        }
    }
    return out;
}

void replace(std::string& text, std::string_view place, std::string_view with) {
    text.replace(text.find(place), place.size(), with);
}

}  // namespace

bool is_about(const Measure& measure, std::string_view word) {
    const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    const auto end = std::ranges::find_if_not(measure.name, is_letter);
    return std::string_view(measure.name.begin(), end) == word;
}

Balanced balanced_scores(const ReportData& data) {
    Balanced balanced{.measures = balanced_measures(data)};
    balanced.rows.resize(data.rows.size());
    for (size_t i = 0; i < data.rows.size() && !balanced.measures.empty(); ++i) {
        const auto is_known = [&](size_t m) {
            return identity_of(data.measures[m]) && selection_of(data.rows[i], m);
        };
        if (data.rows[i].in_balanced && data.rows[i].set_aside.empty() &&
            std::ranges::all_of(balanced.measures, is_known)) {
            balanced.rows[i] = 0.0;
        }
    }
    for (const size_t m : balanced.measures) {
        const auto gain_of = [&](size_t row) {
            return gain(*selection_of(data.rows[row], m), *identity_of(data.measures[m]),
                        data.measures[m].measure.higher_is_better);
        };
        double n = 0.0;
        double mean = 0.0;
        double squares = 0.0;
        for (size_t i = 0; i < data.rows.size(); ++i) {
            if (!balanced.rows[i]) continue;
            n += 1.0;
            mean += gain_of(i);
        }
        if (n == 0.0) return balanced;
        mean /= n;
        for (size_t i = 0; i < data.rows.size(); ++i) {
            if (balanced.rows[i]) squares += (gain_of(i) - mean) * (gain_of(i) - mean);
        }
        double spread = std::sqrt(squares / n);
        if (spread < 1e-12) spread = 1.0;
        for (size_t i = 0; i < data.rows.size(); ++i) {
            if (balanced.rows[i]) *balanced.rows[i] += (gain_of(i) - mean) / spread;
        }
        balanced.identity -= mean / spread;
    }
    return balanced;
}

std::vector<Heatmap> heatmaps(const ReportData& data) {
    std::vector<Heatmap> maps;
    for (size_t m = 0; m < data.measures.size(); ++m) {
        const std::optional<double> identity = identity_of(data.measures[m]);
        if (!identity) continue;
        const Measure& measure = data.measures[m].measure;
        Heatmap map{.name = measure.name,
                    .identity = *identity,
                    .higher_is_better = measure.higher_is_better,
                    .cells = {}};
        for (size_t i = 0; i < data.rows.size(); ++i) {
            const std::optional<double> value = selection_of(data.rows[i], m);
            if (!value || !is_cell(data.rows[i])) continue;
            map.cells.push_back({.row = i,
                                 .value = *value,
                                 .gain = gain(*value, *identity, measure.higher_is_better)});
        }
        if (map.cells.empty()) continue;
        set_scales(map, data);
        clamp_scales(map, range_of(data.measures[m]));
        maps.push_back(std::move(map));
    }
    const Balanced balanced = balanced_scores(data);
    if (!balanced.measures.empty()) {
        Heatmap map{.name = "balanced", .identity = balanced.identity, .cells = {}};
        for (size_t i = 0; i < data.rows.size(); ++i) {
            const std::optional<double> value = balanced.rows[i];
            if (!value || !is_cell(data.rows[i])) continue;
            map.cells.push_back({.row = i, .value = *value, .gain = *value - balanced.identity});
        }
        set_scales(map, data);
        if (!map.cells.empty()) maps.push_back(std::move(map));
    }
    return maps;
}

std::vector<size_t> pareto_front(const ReportData& data, size_t measure, double ReportRow::*cost) {
    const bool higher = data.measures.at(measure).measure.higher_is_better;
    struct Point {
        size_t row;
        double cost;
        double loss;
        bool operator==(const Point& other) const {
            return cost == other.cost && loss == other.loss;
        }
    };
    const size_t no_row = data.rows.size();
    std::vector<Point> points;
    const auto add = [&](size_t row, double its_cost, std::optional<double> value) {
        if (value) points.push_back({row, its_cost, higher ? -*value : *value});
    };
    add(no_row, 1.0, identity_of(data.measures[measure]));
    for (size_t i = 0; i < data.rows.size(); ++i) {
        if (!data.rows[i].set_aside.empty()) continue;
        add(i, data.rows[i].*cost, selection_of(data.rows[i], measure));
    }
    std::ranges::stable_sort(points, [](const Point& a, const Point& b) {
        return a.cost != b.cost ? a.cost < b.cost : a.loss < b.loss;
    });
    std::vector<size_t> front;
    std::optional<Point> last;
    for (const Point& point : points) {
        if (last && !(point.loss < last->loss) && !(point == *last)) continue;
        last = point;
        if (point.row != no_row) front.push_back(point.row);
    }
    return front;
}

std::string report_json(const ReportData& data) { return dump_json(as_json(data), 1) + "\n"; }

std::string report_html(const ReportData& data) {
    std::string page(report_page());
    replace(page, "{{title}}", html_text(data.title));
    replace(page, "{{data}}", json_for_script(as_json(data)));
    return page;
}

void write_report(const std::string& stem, const ReportData& data) {
    write_text(stem + ".json", report_json(data));
    write_text(stem + ".html", report_html(data));
}

}  // namespace pleat
