#pragma once

#include <cstdint>
#include <string>

namespace pleat {

/// "0 B", "512 B", "1.50 KiB", "12.3 MiB", "1.02 GiB": three significant digits from KiB on.
std::string format_bytes(uint64_t bytes);

/// "950", "12.3 k", "4.56 M", "7.89 G": counts such as FLOPs, decimal prefixes.
std::string format_count(uint64_t count);

}  // namespace pleat
