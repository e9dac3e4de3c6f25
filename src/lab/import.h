#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/report.h"

namespace pleat {

/// Reads result files into one report: of RYS (JSON of the dictionaries that its scripts keep, or
/// of their lists), of llm-circuit-finder (JSON Lines), and reports that Pleat wrote as JSON. The
/// measures of others are named after the fields (math_score is "math"), or after the file where it
/// holds bare scores ("math_results.json"); their costs are passes relative to the model's layers.
/// EQ from 0 to 100 is divided by 100, by RYS's rule and file by file. `n_layer` is of the model
/// they were measured on; without it, it is a report's, or that of the longest path written out.
///
/// Rows of several files with the same plan become one row. A measure of several files is one where
/// they agree on the plans that they share; else each has its own, with the file in its name. The
/// notes say so, and what was left out: what cannot be said as a plan, numbers that are not finite,
/// a last line that was cut off.
///
/// Throws Error of one line that names the file and the entry. A pickle is refused: to read one is
/// to run the code in it.
ReportData import_results(const std::vector<std::string>& paths,
                          std::optional<int32_t> n_layer = {});

/// The same of one file's text; `path` is for messages, the title and the measure's name.
ReportData import_text(std::string_view text, const std::string& path,
                       std::optional<int32_t> n_layer = {});

}  // namespace pleat
