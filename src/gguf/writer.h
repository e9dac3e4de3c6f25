#pragma once

#include <ggml.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "gguf/value.h"

namespace pleat::gguf {

/// A tensor to write. `write` is called once, in order, with a sink that takes the data in any
/// number of pieces; the pieces must add up to the tensor's size or the writer throws.
struct TensorToWrite {
    std::string name;
    ggml_type type = GGML_TYPE_F32;
    std::vector<int64_t> ne;  ///< 1 to 4 dimensions, fastest first
    std::function<void(const std::function<void(std::span<const std::byte>)>& sink)> write;
};

/// Writes a version-3 GGUF file: to a temporary file beside `path` first, renamed when complete, so
/// that a failure leaves no broken file and an existing one untouched. Alignment: the value of
/// `general.alignment` in `metadata`, else 32. Throws Error with the path and the reason.
void write(const std::string& path, const std::vector<KeyValue>& metadata,
           const std::vector<TensorToWrite>& tensors);

/// The size of the file that write() would make. Throws Error for what write() refuses up front.
uint64_t written_bytes(const std::string& path, const std::vector<KeyValue>& metadata,
                       const std::vector<TensorToWrite>& tensors);

}  // namespace pleat::gguf
