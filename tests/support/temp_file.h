#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.h"

namespace pleat::test {

/// A fresh directory that goes with the object, with all that lies in it.
class TempDir {
  public:
    TempDir() : owner_(getpid()) {
        std::string name = (std::filesystem::temp_directory_path() / "pleat_test_XXXXXX").string();
        if (mkdtemp(name.data()) == nullptr) fail("{}: {}", name, std::strerror(errno));
        path_ = name;
    }
    ~TempDir() {
        // A death test's child leaves through exit() too, while its parent still needs the files.
        if (getpid() != owner_) return;
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TempDir(const TempDir&) = delete;
    TempDir& operator=(const TempDir&) = delete;

    const std::string& path() const { return path_; }
    std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

  private:
    pid_t owner_;
    std::string path_;
};

/// The one directory of this process; gone when it ends.
inline const TempDir& process_temp_dir() {
    static const TempDir dir;
    return dir;
}

/// A name for a file of its own in the process's directory; the file, if one was made under it,
/// goes with the object. The name ends in `suffix`, so that it can say what it is.
class TempFile {
  public:
    explicit TempFile(std::string_view suffix = "") {
        static int count = 0;
        path_ = process_temp_dir() / (std::to_string(count++) + std::string(suffix));
    }
    TempFile(std::string_view suffix, std::string_view contents) : TempFile(suffix) {
        std::ofstream out(path_, std::ios::binary);
        out.write(contents.data(), static_cast<std::streamsize>(contents.size()));
        if (!out.flush()) fail("{}: cannot write {} bytes", path_, contents.size());
    }
    ~TempFile() { remove(); }
    TempFile(TempFile&& other) noexcept : path_(std::exchange(other.path_, {})) {}
    TempFile& operator=(TempFile&& other) noexcept {
        if (this != &other) {
            remove();
            path_ = std::exchange(other.path_, {});
        }
        return *this;
    }
    TempFile(const TempFile&) = delete;
    TempFile& operator=(const TempFile&) = delete;

    const std::string& path() const { return path_; }

  private:
    void remove() const {
        std::error_code ignored;
        if (!path_.empty()) std::filesystem::remove(path_, ignored);
    }

    std::string path_;
};

/// All bytes of a file. Throws Error when it cannot be read.
inline std::string read_text(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    if (!in) fail("{}: cannot be read", path);
    return text;
}

}  // namespace pleat::test
