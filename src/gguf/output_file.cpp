#include "gguf/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/links.h"

namespace pleat::gguf {
namespace {

constexpr size_t buffer_bytes = 1U << 20U;

/// Short, because the file's own name may be as long as names can be.
std::string temporary_name() {
    static std::atomic<uint32_t> next{0};
    return fmt::format(".pleat-{}-{}.tmp", ::getpid(), next++);
}

}  // namespace

OutputFile::OutputFile(const std::string& path) : path_(link_target(path)) {
    const std::filesystem::path directory = std::filesystem::path(path_).parent_path();
    do {
        temporary_ = (directory / temporary_name()).string();
        fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (fd_ < 0 && errno == EEXIST);  // left over from a process of the same number
    if (fd_ < 0) fail_errno(errno);
    buffer_.reserve(buffer_bytes);
}

OutputFile::~OutputFile() {
    if (fd_ < 0) return;
    ::close(fd_);
    ::unlink(temporary_.c_str());
}

void OutputFile::write(std::span<const std::byte> bytes) {
    size_ += bytes.size();
    if (buffer_.size() + bytes.size() > buffer_bytes) flush();
    if (bytes.size() > buffer_bytes) return write_through(bytes);
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

void OutputFile::pad(uint64_t alignment) {
    constexpr std::array<std::byte, 4096> zeros{};
    uint64_t missing = round_up(size_, alignment) - size_;
    while (missing > 0) {
        const uint64_t piece = std::min<uint64_t>(missing, zeros.size());
        write(std::span(zeros).first(piece));
        missing -= piece;
    }
}

void OutputFile::commit() {
    flush();
    if (::fsync(fd_) != 0) fail_errno(errno);
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail_errno(errno);
    ::close(std::exchange(fd_, -1));
    // The name itself is durable once its directory is; where that cannot be asked for, the file
    // is whole all the same.
    const std::string parent = std::filesystem::path(path_).parent_path().string();
    const int directory = ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_CLOEXEC);
    if (directory < 0) return;
    ::fsync(directory);
    ::close(directory);
}

void OutputFile::flush() {
    write_through(buffer_);
    buffer_.clear();
}

void OutputFile::write_through(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
        if (written < 0) {
            if (errno == EINTR) continue;
            fail_errno(errno);
        }
        bytes = bytes.subspan(static_cast<size_t>(written));
    }
}

void OutputFile::fail_errno(int error) const {
    fail("{}: cannot write: {}", path_, std::strerror(error));
}

}  // namespace pleat::gguf
