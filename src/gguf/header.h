#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "gguf/file.h"
#include "gguf/value.h"

namespace pleat::gguf {

/// All that stands before the data of one GGUF file.
struct Header {
    uint32_t version = 0;
    uint64_t alignment = 0;
    std::vector<KeyValue> metadata;
    std::vector<TensorInfo> tensors;  ///< their `part` is 0
};

/// Reads and proves the header of a file whose whole contents are `bytes`; `path` is for messages
/// only. Throws Error for what File::open refuses in a single file. Allocates no more than a small
/// multiple of the bytes really present, and takes time linear in them.
Header parse_header(std::string_view path, std::span<const std::byte> bytes);

/// What a file that does not begin with the magic seems to be, and what to do about it; one line
/// without the file's name.
std::string describe_foreign_file(std::span<const std::byte> bytes);

}  // namespace pleat::gguf
