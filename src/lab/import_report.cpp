#include "lab/import_report.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "base/error.h"
#include "plan/message.h"

namespace pleat {
namespace {

using nlohmann::ordered_json;

constexpr int64_t max_layers = 4096;

/// The report leaves out numbers that are not finite.
double number_of(const ordered_json& object, const char* name) {
    if (!object.contains(name)) return std::numeric_limits<double>::quiet_NaN();
    return object.at(name).get<double>();
}

double ratio_of(const ordered_json& object, const char* name) {
    return object.contains(name) ? object.at(name).get<double>() : 1.0;
}

std::optional<Score> score_of(const ordered_json& object, const char* name) {
    if (!object.contains(name)) return std::nullopt;
    const ordered_json& it = object.at(name);
    return Score{.value = number_of(it, "value"), .error = number_of(it, "error")};
}

std::optional<Difference> difference_of(const ordered_json& object, const char* name) {
    if (!object.contains(name)) return std::nullopt;
    const ordered_json& it = object.at(name);
    return Difference{.value = number_of(it, "value"),
                      .low = number_of(it, "low"),
                      .high = number_of(it, "high")};
}

ReportScore report_score_of(const ordered_json& json) {
    ReportScore score{.selection = score_of(json, "selection"),
                      .difference = difference_of(json, "difference"),
                      .validation = score_of(json, "validation"),
                      .validation_difference = difference_of(json, "validation_difference")};
    if (json.contains("survives")) score.survives = json.at("survives").get<bool>();
    return score;
}

ReportMeasure measure_of(const ordered_json& json) {
    return {.measure = {.name = json.at("name").get<std::string>(),
                        .higher_is_better = json.at("higher_is_better").get<bool>()},
            .unit = json.value("unit", ""),
            .identity = report_score_of(json.at("identity")),
            .n_selection = json.value("n_selection", size_t{0}),
            .n_validation = json.value("n_validation", size_t{0})};
}

ReportRow row_of(const ordered_json& json, size_t n_measures, int32_t n_layer) {
    ReportRow row{.flag = json.at("flag").get<std::string>(),
                  .canonical = json.at("canonical").get<std::string>(),
                  .compute_ratio = ratio_of(json, "compute_ratio"),
                  .read_ratio = ratio_of(json, "read_ratio"),
                  .kv_ratio = ratio_of(json, "kv_ratio"),
                  .in_balanced = json.value("in_balanced", true),
                  .set_aside = json.value("set_aside", "")};
    if (json.contains("begin")) {
        const auto begin = json.at("begin").get<int64_t>();
        const auto end = json.at("end").get<int64_t>();
        if (begin < 0 || begin >= end || end > n_layer) {
            fail("a block from layer {} to before {}", begin, end);
        }
        row.begin = static_cast<int32_t>(begin);
        row.end = static_cast<int32_t>(end);
    }
    for (const ordered_json& score : json.at("scores")) {
        row.scores.push_back(report_score_of(score));
    }
    if (row.scores.size() > n_measures) fail("a row of more scores than there are measures");
    row.scores.resize(n_measures);
    return row;
}

ReportData report_of(const ordered_json& json) {
    if (json.at("pleat_report") != ordered_json(1)) fail("another version's");
    ReportData data{.title = json.at("title").get<std::string>(),
                    .model = json.at("model").get<std::string>(),
                    .command = json.value("command", ""),
                    .n_plans_tried = json.value("n_plans_tried", size_t{0}),
                    .confidence = json.at("confidence").get<double>()};
    const auto n_layer = json.at("n_layer").get<int64_t>();
    if (n_layer < 1 || n_layer > max_layers) fail("{} layers", n_layer);
    data.n_layer = static_cast<int32_t>(n_layer);
    for (const ordered_json& it : json.at("measures")) data.measures.push_back(measure_of(it));
    for (const ordered_json& it : json.at("rows")) {
        data.rows.push_back(row_of(it, data.measures.size(), data.n_layer));
    }
    for (const ordered_json& it : json.at("settings")) {
        data.settings.emplace_back(it.at("name").get<std::string>(),
                                   it.at("value").get<std::string>());
    }
    for (const ordered_json& it : json.at("notes")) data.notes.push_back(it.get<std::string>());
    return data;
}

}  // namespace

ReportData parse_report(const ordered_json& json, const std::string& path) {
    constexpr const char* message = "{}: not a report as Pleat writes it: {}";
    try {
        return report_of(json);
    } catch (const ordered_json::exception& error) {
        fail(message, path, escaped(error.what()));
    } catch (const Error& error) {
        fail(message, path, error.what());
    }
}

}  // namespace pleat
