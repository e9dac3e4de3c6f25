#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace pleat {
namespace {

class Descriptor {
  public:
    explicit Descriptor(int fd) : fd_(fd) {}
    ~Descriptor() {
        if (fd_ >= 0) ::close(fd_);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int get() const { return fd_; }

  private:
    int fd_;
};

}  // namespace

MappedFile::MappedFile(std::string path) : path_(std::move(path)) {
    // Non-blocking, so that a named pipe given by mistake is an error and not a hang.
    const Descriptor fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (fd.get() < 0) fail("{}: cannot open: {}", path_, std::strerror(errno));
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0) fail("{}: cannot stat: {}", path_, std::strerror(errno));
    if (!S_ISREG(info.st_mode)) fail("{}: not a regular file", path_);
    size_ = static_cast<size_t>(info.st_size);
    if (size_ == 0) return;
    void* const address = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd.get(), 0);
    if (address == MAP_FAILED) fail("{}: cannot map: {}", path_, std::strerror(errno));
    data_ = static_cast<const std::byte*>(address);
}

MappedFile::~MappedFile() {
    if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
}

void MappedFile::prefetch(uint64_t offset, uint64_t size) const {
    if (offset >= size_) return;
    const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    const uint64_t begin = offset / page * page;
    const uint64_t end = std::min<uint64_t>(size_, offset + size);
    if (end > begin) ::madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_WILLNEED);
}

void MappedFile::release(uint64_t offset, uint64_t size) const {
    if (offset >= size_) return;
    const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    // Only whole pages: the ends are shared with neighbours that may be in use.
    const uint64_t begin = (offset + page - 1) / page * page;
    const uint64_t end = std::min<uint64_t>(size_, offset + size) / page * page;
    if (end > begin) ::madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_DONTNEED);
}

}  // namespace pleat
