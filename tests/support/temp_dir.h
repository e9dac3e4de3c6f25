#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>

namespace pleat {

/// A new, empty directory that goes away with the object.
class TempDir {
  public:
    TempDir()
        : owner_(::getpid()),
          path_((std::filesystem::temp_directory_path() / "pleat-XXXXXX").string()) {
        if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no temporary directory");
    }
    ~TempDir() {
        // A death test's child leaves through exit() too, while its parent still needs the files.
        if (::getpid() != owner_) return;
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TempDir(const TempDir&) = delete;
    TempDir& operator=(const TempDir&) = delete;

    const std::string& path() const { return path_; }
    /// The path of `name` in it.
    std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }
    /// Writes a file with these bytes and returns its path.
    std::string file_with(std::string_view name, std::string_view bytes) const {
        std::ofstream out(file(name), std::ios::binary);
        out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        if (!out.flush()) throw std::runtime_error("cannot write " + file(name));
        return file(name);
    }

  private:
    pid_t owner_;
    std::string path_;
};

inline std::string read_bytes(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw std::runtime_error("cannot read " + path);
    return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace pleat
