#pragma once

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "support/temp_dir.h"

namespace pleat::test {

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
        path_ = process_temp_dir().file(std::to_string(count++) + std::string(suffix));
    }
    TempFile(std::string_view suffix, std::string_view contents) : TempFile(suffix) {
        std::ofstream out(path_, std::ios::binary);
        out.write(contents.data(), static_cast<std::streamsize>(contents.size()));
        if (!out.flush()) throw std::runtime_error("cannot write " + path_);
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

}  // namespace pleat::test
