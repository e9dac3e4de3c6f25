#pragma once

#include <string>
#include <string_view>

#include "gguf/file.h"
#include "model/hparams.h"

namespace pleat {

/// The keys that every architecture reads, under "<arch>.": sizes, head counts, norm epsilon, RoPE,
/// experts. Checked so that no later step divides by zero, overflows or trips ggml. Throws Error
/// that names the file, the key, what was found and what is expected.
Hparams read_common_keys(const gguf::File& file, std::string_view arch);

/// "<file>: key <key> is <found>, expected <expected>"
[[noreturn]] void bad_key(const gguf::File& file, const std::string& key, const std::string& found,
                          const std::string& expected);

}  // namespace pleat
