#pragma once

#include <cstddef>
#include <string>

#include "lab/report.h"

namespace pleat {

enum class HeatmapStyle {
    ansi,   ///< coloured half blocks, 24-bit colours: two cells a character
    plain,  ///< one digit a cell: 5 is the identity's value, 9 the best, 1 the worst
};

/// The map of single repeated blocks under one measure: the block's begin from left to right, its
/// end from top to bottom. `measure` == data.measures.size() is the balanced score. Cells are
/// joined (the mean) where the map is wider than `columns`.
std::string terminal_heatmap(const ReportData& data, size_t measure, HeatmapStyle style,
                             size_t columns = 100);

}  // namespace pleat
