#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lab/scores.h"
#include "plan_file/fingerprint.h"

namespace pleat {

/// A difference to the identity plan on the same items, with its interval.
struct Difference {
    double value = 0.0;
    double low = 0.0;
    double high = 0.0;
    bool operator==(const Difference&) const = default;
};

/// What a text or a probe file was measured on.
struct DataSource {
    std::string name;    ///< for people: the file's name without folders
    std::string sha256;  ///< of its bytes
    size_t n_items = 0;
    bool operator==(const DataSource&) const = default;
};

/// One measure of the profile's plan. `selection` is what the plan was chosen by, `validation` the
/// items that had no say; the identity's values are on the same items.
struct ProfileMeasure {
    Measure measure;
    std::string data;  ///< name of its DataSource
    size_t n_selection = 0;
    size_t n_validation = 0;
    std::optional<Score> selection = {};
    std::optional<Score> validation = {};
    std::optional<Score> identity_selection = {};
    std::optional<Score> identity_validation = {};
    std::optional<Difference> selection_difference = {};
    std::optional<Difference> validation_difference = {};
    std::optional<bool> survives = {};  ///< after Holm's correction for all plans tried
};

/// One step of a calibration: what it costs and what it saves.
struct CurvePoint {
    std::string plan;              ///< one-line SPEC
    std::vector<int32_t> dropped;  ///< layers that lost their attention, in order of dropping
    double loss = 0.0;             ///< the measure that was calibrated by
    std::optional<double> error = {};
    uint64_t kv_bytes = 0;  ///< for the context of the settings
    std::optional<double> predicted_tokens_per_s = {};
    std::optional<double> measured_tokens_per_s = {};
};

/// How much a layer's sub-layers turn the residual stream: mean over tokens of cos(x, x + f(x)),
/// where x is the stream before the sub-layer and f(x) what it adds (He et al. 2024, "What Matters
/// in Transformers? Not All Attention is Needed", equation 1). Near 1: the sub-layer does little,
/// and may be one to drop. It looks at no loss, and takes one run of the identity plan.
struct LayerSimilarity {
    double attention = 0.0;  ///< of a recurrent layer: of what stands in its place
    double ffn = 0.0;
    bool operator==(const LayerSimilarity&) const = default;
};

struct Machine {
    std::string cpu;
    int threads = 0;
};

struct Versions {
    std::string pleat;
    std::string ggml;
    std::string libllama;
};

/// How the numbers came about.
struct Provenance {
    std::string command;  ///< the command line, quoted for a shell
    std::string date;     ///< UTC, "2025-01-31T12:00:00Z"
    Machine machine;
    Versions versions;
};

/// A plan that was found, for which model, and how: what `--plan` reads (docs/profile.schema.json).
struct Profile {
    std::string plan;  ///< canonical, as one-line SPEC: "layers:0..33,26..63"; empty = identity
    Fingerprint model;
    std::vector<ProfileMeasure> measures = {};
    std::vector<DataSource> data = {};
    size_t n_plans_tried = 0;
    std::vector<CurvePoint> curve = {};
    std::vector<LayerSimilarity> similarity = {};  ///< by layer, or empty
    std::vector<std::pair<std::string, std::string>> settings = {};
    std::optional<Provenance> provenance = {};
    std::vector<std::string> notes = {};
};

/// The JSON text of a profile, with a newline at the end. Numbers that are not finite are left out.
std::string profile_json(const Profile& profile);

/// Writes it beside `path` first and renames it. Throws Error with the path and the reason.
void write_profile(const std::string& path, const Profile& profile);

/// This machine, these versions, now.
Provenance provenance_here(const std::vector<std::string>& arguments, int threads);

/// SHA-256 of a file's bytes with its name, for `data`. Throws Error when it cannot be read.
DataSource data_source(const std::string& path, size_t n_items);

}  // namespace pleat
