#pragma once

#include <ggml.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mapped_file.h"
#include "gguf/value.h"

namespace pleat::gguf {

/// A tensor as the header describes it; proved to lie inside its part and to overlap no other.
struct TensorInfo {
    std::string name;
    ggml_type type = GGML_TYPE_F32;
    std::array<int64_t, GGML_MAX_DIMS> ne{1, 1, 1, 1};  ///< fastest first; unused dimensions are 1
    int n_dims = 1;                                     ///< as stored
    uint64_t bytes = 0;
    uint32_t part = 0;    ///< index of the split file that holds it
    uint64_t offset = 0;  ///< of the data, from the start of that file
};

/// A GGUF model on disk: one file, or all parts of a split one (`-00001-of-0000N`), memory-mapped.
/// Opening reads headers only, and proves every size, offset, type and dimension; data pages are
/// read when touched. Format: ggml's docs/gguf.md, versions 2 and 3, little endian.
class File {
  public:
    /// Opens `path`; when it is the first part of a split model, its siblings too. Throws Error
    /// that names the file, the key or tensor, what was found and what was expected.
    static File open(const std::string& path);

    const std::string& path() const { return parts_.front().path(); }
    uint32_t version() const { return version_; }
    uint64_t alignment() const { return alignment_; }

    /// Metadata of the first part, in file order.
    const std::vector<KeyValue>& metadata() const { return metadata_; }
    const Value* find(std::string_view key) const;

    /// Tensors of all parts, in file order.
    const std::vector<TensorInfo>& tensors() const { return tensors_; }
    const TensorInfo* find_tensor(std::string_view name) const;

    /// The tensor's bytes in the mapping, valid as long as this File.
    std::span<const std::byte> data(const TensorInfo& tensor) const;

    const std::vector<MappedFile>& parts() const { return parts_; }
    /// Bytes of all parts together.
    uint64_t file_bytes() const;

    // Typed access. Integers of any width are taken if the value fits; a key of another type, or
    // out of range, throws Error "<file>: key <key> has type <t>, expected <what>". Absent: no
    // value.
    std::optional<uint32_t> u32(std::string_view key) const;
    std::optional<float> f32(std::string_view key) const;
    std::optional<bool> boolean(std::string_view key) const;
    std::optional<std::string> string(std::string_view key) const;
    /// Like u32, but an absent key throws Error "<file>: key <key> is missing".
    uint32_t required_u32(std::string_view key) const;
    float required_f32(std::string_view key) const;
    std::string required_string(std::string_view key) const;
    /// A scalar (repeated n times) or an array of exactly n entries; else Error with both lengths.
    std::optional<std::vector<uint32_t>> u32_per_layer(std::string_view key, uint32_t n) const;
    /// Likewise; an array may also hold integers 0 and 1, a lone integer is no flag.
    std::optional<std::vector<bool>> boolean_per_layer(std::string_view key, uint32_t n) const;
    std::optional<std::vector<int32_t>> i32_array(std::string_view key) const;

  private:
    File() = default;
    static File open_part(const std::string& path);
    void add_part(File part);

    std::vector<MappedFile> parts_;
    uint32_t version_ = 0;
    uint64_t alignment_ = 0;
    std::vector<KeyValue> metadata_;
    std::vector<TensorInfo> tensors_;
    std::unordered_map<std::string, size_t> key_index_;
    std::unordered_map<std::string, size_t> tensor_index_;
};

}  // namespace pleat::gguf
