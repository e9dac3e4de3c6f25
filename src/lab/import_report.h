#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "lab/report.h"

namespace pleat {

/// A report as report_json wrote it. Throws Error of one line with the path and what is wrong.
ReportData parse_report(const nlohmann::ordered_json& json, const std::string& path);

}  // namespace pleat
