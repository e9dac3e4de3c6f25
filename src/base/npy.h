#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace pleat {

/// Writes F32 [n_rows, n_columns], row-major, as a NumPy file (NEP 1, version 1.0). Throws Error
/// with the path and the reason.
void write_npy(const std::string& path, std::span<const float> values, size_t n_rows,
               size_t n_columns);

}  // namespace pleat
