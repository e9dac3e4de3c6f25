#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace pleat::gguf {

/// A file that appears under its name only when it is complete: it is written beside it under a
/// temporary name, which is removed again unless commit() was reached. A symbolic link stays: the
/// file that it stands for is written. What goes wrong throws Error
/// "<path>: cannot write: <reason>".
class OutputFile {
  public:
    explicit OutputFile(const std::string& path);
    ~OutputFile();
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    void write(std::span<const std::byte> bytes);
    /// Zeros up to the next multiple of `alignment`.
    void pad(uint64_t alignment);
    uint64_t size() const { return size_; }

    /// Everything on disk, then the rename: after a crash the name holds the old file or the new.
    void commit();

  private:
    void flush();
    void write_through(std::span<const std::byte> bytes);
    [[noreturn]] void fail_errno(int error) const;

    std::string path_;
    std::string temporary_;
    int fd_ = -1;
    uint64_t size_ = 0;
    std::vector<std::byte> buffer_;
};

}  // namespace pleat::gguf
