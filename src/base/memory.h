#pragma once

#include <cstdint>
#include <optional>

namespace pleat {

/// Bytes that can be allocated without swapping (Linux: MemAvailable); no value where unknown.
std::optional<uint64_t> available_memory();

}  // namespace pleat
