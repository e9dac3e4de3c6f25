#pragma once

#include <cstddef>
#include <string>

#include "lab/report.h"

namespace pleat {

enum class HeatmapStyle {
    ansi,   ///< coloured half blocks, 24-bit colours: two cells a character
    plain,  ///< one digit a cell: 5 is like the identity plan, 9 best, 1 worst
};

/// A map (report.h, heatmaps) with a line that explains it, as RYS draws them: the block's begin
/// from top to bottom, its end from left to right, numbered. Neighbours share a cell (the mean of
/// their gains) where the map is wider than `columns`.
std::string terminal_heatmap(const ReportData& data, const Heatmap& map, HeatmapStyle style,
                             size_t columns = 100);

}  // namespace pleat
