#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace pleat {

/// A whole file mapped read-only. Pages are read when touched. The mapping lives as long as the
/// object; its address never changes, also when the object is moved.
class MappedFile {
  public:
    /// Throws Error that names the file when it cannot be opened or mapped, or is no regular file.
    /// An empty file has an empty span.
    explicit MappedFile(std::string path);
    ~MappedFile();
    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&& other) noexcept;
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    const std::string& path() const { return path_; }
    std::span<const std::byte> bytes() const { return {data_, size_}; }

    /// Asks the system to read these bytes ahead, or to drop their pages from memory. Both are
    /// hints: contents never change. Offsets beyond the end are cut off.
    void prefetch(uint64_t offset, uint64_t size) const;
    void release(uint64_t offset, uint64_t size) const;

  private:
    std::string path_;
    const std::byte* data_ = nullptr;
    size_t size_ = 0;
};

}  // namespace pleat
