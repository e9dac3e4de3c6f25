#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lab/report.h"

namespace pleat {

using ImportedPath = std::vector<int32_t>;

/// One configuration of a file: as a path where it is written out, else as what was done to the
/// layers, until it is known how many there are.
struct ImportedEntry {
    /// Empty: not written out. -1 - a: the layers from a to the last one.
    ImportedPath path = {};
    std::vector<std::pair<int32_t, int32_t>> blocks = {};  ///< repeated, half-open; (0,0) = none
    std::optional<std::pair<int32_t, int32_t>> pruned = {};
    std::vector<std::pair<std::string, double>> values = {};  ///< by measure
};

/// What the files of RYS and llm-circuit-finder hold.
struct ImportedEntries {
    std::vector<ImportedEntry> entries = {};
    std::map<std::string, size_t> left_out = {};  ///< entries that are no plans, by the reason
    std::vector<std::string> notes = {};          ///< what else was passed over
};

/// Results of others, or a report that Pleat wrote. Throws Error as import_results says.
std::variant<ImportedEntries, ReportData> read_import(std::string_view text,
                                                      const std::string& path);

}  // namespace pleat
