#pragma once

#include <cstdint>
#include <string>

#include "gguf/file.h"

namespace pleat {

/// Throws Error when `out` must not be written: it is one of the model's own files (by whatever
/// name or link), it exists and `force` is not set, or it is no regular file.
void check_output(const std::string& out, const gguf::File& model, bool force);

/// Throws Error when the disk that `out` will be on has less free space than `bytes`.
void check_free_space(const std::string& out, uint64_t bytes);

}  // namespace pleat
