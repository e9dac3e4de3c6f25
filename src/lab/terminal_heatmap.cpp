#include "lab/terminal_heatmap.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

namespace pleat {
namespace {

using Color = std::array<double, 3>;

// Orange for worse, blue for better: told apart with every kind of colour vision.
constexpr Color worst{217, 95, 14};
constexpr Color neutral{228, 228, 228};
constexpr Color best{24, 100, 190};

/// Gains by (begin, end), several blocks to a cell where the map is too wide.
class Grid {
  public:
    Grid(const ReportData& data, const Heatmap& map, size_t columns) {
        int32_t n_layer = data.n_layer;
        for (const HeatmapCell& cell : map.cells) {
            n_layer = std::max(n_layer, *data.rows[cell.row].end);
        }
        const auto n = static_cast<size_t>(std::max(n_layer, 1));
        step_ = (n + columns - 1) / std::max<size_t>(columns, 1);
        size_ = (n + step_ - 1) / step_;
        sums_.resize(size_ * size_);
        counts_.resize(size_ * size_);
        for (const HeatmapCell& cell : map.cells) {
            const ReportRow& row = data.rows[cell.row];
            const size_t at = index(static_cast<size_t>(std::max(*row.begin, 0)) / step_,
                                    static_cast<size_t>(std::max(*row.end, 1) - 1) / step_);
            sums_[at] += cell.gain;
            counts_[at] += 1.0;
        }
    }

    size_t size() const { return size_; }
    size_t step() const { return step_; }
    std::optional<double> gain(size_t begin, size_t end) const {
        if (begin >= size_ || counts_[index(begin, end)] == 0.0) return std::nullopt;
        return sums_[index(begin, end)] / counts_[index(begin, end)];
    }

  private:
    size_t index(size_t begin, size_t end) const { return begin * size_ + end; }

    size_t size_ = 0;
    size_t step_ = 1;
    std::vector<double> sums_;
    std::vector<double> counts_;
};

/// -1 for the worst that has a colour of its own, 1 for the best.
double place(double gain, const Heatmap& map) {
    if (gain == 0.0) return 0.0;
    return std::clamp(gain / (gain < 0 ? map.scale_down : map.scale_up), -1.0, 1.0);
}

std::string color(int layer, double gain, const Heatmap& map) {
    const double t = place(gain, map);
    const Color& end = t < 0 ? worst : best;
    Color mixed{};
    for (size_t i = 0; i < 3; ++i) mixed[i] = neutral[i] + (end[i] - neutral[i]) * std::abs(t);
    return fmt::format("\x1b[{};2;{:.0f};{:.0f};{:.0f}m", layer, mixed[0], mixed[1], mixed[2]);
}

std::string colored_cell(std::optional<double> upper, std::optional<double> lower,
                         const Heatmap& map) {
    constexpr int foreground = 38;
    constexpr int background = 48;
    if (!upper && !lower) return " ";
    if (!lower) return color(foreground, *upper, map) + "\u2580\x1b[0m";
    if (!upper) return color(foreground, *lower, map) + "\u2584\x1b[0m";
    return color(foreground, *upper, map) + color(background, *lower, map) + "\u2580\x1b[0m";
}

char digit(std::optional<double> gain, const Heatmap& map) {
    if (!gain) return ' ';
    return static_cast<char>('5' + std::lround(4.0 * place(*gain, map)));
}

/// What the colours or digits say.
std::string legend(const Heatmap& map, bool ansi) {
    const double sign = map.higher_is_better ? 1.0 : -1.0;
    std::string text =
        fmt::format("{}: {} is the identity's {:.6g}", map.name, ansi ? "grey" : "5", map.identity);
    if (map.scale_up > 0) {
        text +=
            fmt::format(", {} {:+.4g} from it or better", ansi ? "blue" : "9", sign * map.scale_up);
    }
    if (map.scale_down > 0) {
        text += fmt::format(", {} {:+.4g} or worse", ansi ? "orange" : "1", -sign * map.scale_down);
    }
    return text;
}

/// The blocks' ends above their columns, read downwards.
std::string column_numbers(const Grid& grid) {
    const size_t n_digits = fmt::to_string(grid.size() * grid.step()).size();
    std::string out;
    for (size_t line = 0; line < n_digits; ++line) {
        out += line + 1 == n_digits ? " end " : "     ";
        for (size_t column = 0; column < grid.size(); ++column) {
            out += fmt::format("{:>{}}", (column + 1) * grid.step(), n_digits)[line];
        }
        out += "\n";
    }
    return out;
}

}  // namespace

std::string terminal_heatmap(const ReportData& data, const Heatmap& map, HeatmapStyle style,
                             size_t columns) {
    const Grid grid(data, map, columns);
    const bool ansi = style == HeatmapStyle::ansi;
    const size_t n_begins = ansi ? 2 : 1;  // of a line
    std::string out =
        fmt::format("{}; begin downwards{}, end to the right{}\n", legend(map, ansi),
                    ansi ? " (two a line)" : "",
                    grid.step() > 1 ? fmt::format(", {} layers a cell", grid.step()) : "");
    out += column_numbers(grid);
    for (size_t begin = 0; begin < grid.size(); begin += n_begins) {
        std::string line = fmt::format("{:>4} ", begin * grid.step());
        for (size_t end = 0; end < grid.size(); ++end) {
            if (ansi) {
                line += colored_cell(grid.gain(begin, end), grid.gain(begin + 1, end), map);
            } else {
                line += digit(grid.gain(begin, end), map);
            }
        }
        line.erase(line.find_last_not_of(' ') + 1);
        out += line + "\n";
    }
    return out;
}

}  // namespace pleat
