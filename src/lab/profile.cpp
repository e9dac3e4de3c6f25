#include "lab/profile.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <ggml.h>
#include <llama.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/cpu.h"
#include "base/mapped_file.h"
#include "base/sha256.h"
#include "lab/json.h"
#include "lab/text_output.h"
#include "plan_file/plan_file.h"

namespace pleat {
namespace {

using nlohmann::ordered_json;

void add_pair(ordered_json& object, const char* name, const std::optional<Score>& plan,
              const std::optional<Score>& identity, const std::optional<Difference>& difference,
              size_t n_items) {
    ordered_json part = {{"n_items", n_items}};
    if (plan) part["plan"] = score_json(*plan);
    if (identity) part["identity"] = score_json(*identity);
    if (difference) part["difference"] = difference_json(*difference);
    if (part.size() > 1) object[name] = part;
}

ordered_json measure_json(const ProfileMeasure& it) {
    ordered_json json = {{"name", it.measure.name},
                         {"higher_is_better", it.measure.higher_is_better}};
    if (!it.data.empty()) json["data"] = it.data;
    add_pair(json, "selection", it.selection, it.identity_selection, it.selection_difference,
             it.n_selection);
    add_pair(json, "validation", it.validation, it.identity_validation, it.validation_difference,
             it.n_validation);
    if (it.survives) json["survives"] = *it.survives;
    return json;
}

ordered_json curve_json(const CurvePoint& it) {
    ordered_json json = {{"plan", it.plan}, {"dropped", it.dropped}};
    add_finite(json, "loss", it.loss);
    add_finite(json, "error", it.error);
    json["kv_bytes"] = it.kv_bytes;
    add_finite(json, "predicted_tokens_per_s", it.predicted_tokens_per_s);
    add_finite(json, "measured_tokens_per_s", it.measured_tokens_per_s);
    return json;
}

ordered_json provenance_json(const Provenance& it) {
    return {{"command", it.command},
            {"date", it.date},
            {"machine", {{"cpu", it.machine.cpu}, {"threads", it.machine.threads}}},
            {"versions",
             {{"pleat", it.versions.pleat},
              {"ggml", it.versions.ggml},
              {"libllama", it.versions.libllama}}}};
}

/// As a person would type it: quoted only where a shell asks for it.
std::string shell_word(const std::string& word) {
    const auto plain = [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               std::string_view("_-./=:,+%@").find(c) != std::string_view::npos;
    };
    if (!word.empty() && std::ranges::all_of(word, plain)) return word;
    std::string quoted = "'";
    for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted + "'";
}

}  // namespace

std::string profile_json(const Profile& profile) {
    ordered_json json = {{"pleat_profile", profile_schema},
                         {"plan", profile.plan},
                         {"model", fingerprint_json(profile.model)}};
    for (const ProfileMeasure& it : profile.measures) json["measures"].push_back(measure_json(it));
    for (const DataSource& it : profile.data) json["data"].push_back(data_source_json(it));
    if (profile.n_plans_tried > 0) json["n_plans_tried"] = profile.n_plans_tried;
    for (const CurvePoint& it : profile.curve) json["curve"].push_back(curve_json(it));
    for (const LayerSimilarity& it : profile.similarity) {
        json["similarity"].push_back({{"attention", it.attention}, {"ffn", it.ffn}});
    }
    for (const auto& [name, value] : profile.settings) json["settings"][name] = value;
    if (profile.provenance) json["provenance"] = provenance_json(*profile.provenance);
    if (!profile.notes.empty()) json["notes"] = profile.notes;
    return dump_json(json, 2) + "\n";
}

void write_profile(const std::string& path, const Profile& profile) {
    write_text(path, profile_json(profile));
}

Provenance provenance_here(const std::vector<std::string>& arguments, int threads) {
    Provenance here;
    for (const std::string& argument : arguments) {
        here.command += (here.command.empty() ? "" : " ") + shell_word(argument);
    }
    const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    here.date = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
    here.machine = {.cpu = cpu_name(), .threads = threads};
    here.versions = {.pleat = PLEAT_VERSION, .ggml = ggml_version(), .libllama = llama_version()};
    return here;
}

DataSource data_source(const std::string& path, size_t n_items) {
    const MappedFile file(path);
    return {.name = std::filesystem::path(path).filename().string(),
            .sha256 = Sha256().add(file.bytes()).hex(),
            .n_items = n_items};
}

}  // namespace pleat
