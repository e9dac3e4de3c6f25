#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/report.h"

namespace pleat {

/// Reads result files of RYS (JSON of the dictionaries that its scripts keep, or of their lists)
/// and of llm-circuit-finder (JSON Lines) into one report. Rows of several files with the same plan
/// become one row. The measures are named after the fields (math_score is "math"), or after the
/// file where it holds bare scores ("math_results.json"). `n_layer` is of the model they were
/// measured on; without it, it is taken from the longest path that is written out. Costs are passes
/// relative to the model's layers. What cannot be said as a plan is left out and counted in the
/// notes.
///
/// Throws Error of one line that names the file and the entry. A pickle is refused: to read one is
/// to run the code in it.
ReportData import_results(const std::vector<std::string>& paths,
                          std::optional<int32_t> n_layer = {});

/// The same of one file's text; `path` is for messages and the measure's name.
ReportData import_text(std::string_view text, const std::string& path,
                       std::optional<int32_t> n_layer = {});

}  // namespace pleat
