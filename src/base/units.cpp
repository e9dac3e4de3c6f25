#include "base/units.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>

namespace pleat {
namespace {

std::string scaled(double value, double step, const std::array<const char*, 5>& units) {
    size_t unit = 0;
    // 999.5 would print as "1000" with no digit after the point; move up before that.
    while (value >= step - 0.5 && unit + 1 < units.size()) {
        value /= step;
        ++unit;
    }
    if (unit == 0) return fmt::format("{:.0f}{}", value, units[0]);
    const int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    return fmt::format("{:.{}f}{}", value, digits, units[unit]);
}

}  // namespace

std::string format_bytes(uint64_t bytes) {
    return scaled(static_cast<double>(bytes), 1024.0, {" B", " KiB", " MiB", " GiB", " TiB"});
}

std::string format_count(uint64_t count) {
    return scaled(static_cast<double>(count), 1000.0, {"", " k", " M", " G", " T"});
}

}  // namespace pleat
