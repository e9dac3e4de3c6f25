#include "cli/result_files.h"

#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/links.h"

namespace pleat::cli {
namespace {

namespace fs = std::filesystem;

/// Also of files that are not there yet.
bool same_file(const std::string& a, const std::string& b) {
    std::error_code error;
    if (fs::equivalent(a, b, error)) return true;
    const fs::path x = fs::weakly_canonical(link_target(a), error);
    const fs::path y = fs::weakly_canonical(link_target(b), error);
    return !error && x == y;
}

bool holds(const std::string& path, std::string_view mark) {
    std::ifstream file(path, std::ios::binary);
    std::array<char, 256> first{};
    file.read(first.data(), first.size());
    const std::string_view read(first.data(), static_cast<size_t>(file.gcount()));
    return read.empty() || read.find(mark) != std::string_view::npos;
}

}  // namespace

void ResultFiles::add(const std::string& path, std::string_view flag, std::string_view mark) {
    if (path.empty()) return;
    for (const std::string& input : inputs_) {
        if (same_file(path, input)) {
            fail("{} {}: is {}, which is read; name another file", flag, path, input);
        }
    }
    for (const Result& other : results_) {
        if (same_file(path, other.path)) {
            fail("{} {}: is where {} goes; name another file", flag, path, other.flag);
        }
    }
    std::error_code error;
    const bool exists = fs::exists(path, error);
    if (exists && !fs::is_regular_file(path, error)) {
        fail("{} {}: is no regular file", flag, path);
    }
    const fs::path folder = fs::absolute(link_target(path), error).parent_path();
    if (!fs::is_directory(folder, error)) {
        fail("{} {}: there is no folder {}", flag, path, folder.string());
    }
    if (::access(folder.c_str(), W_OK) != 0) {
        fail("{} {}: the folder {} cannot be written to", flag, path, folder.string());
    }
    if (exists && !mark.empty() && !holds(path, mark)) {
        fail("{} {}: holds something else than such a result; move it away or name another file",
             flag, path);
    }
    results_.push_back({path, std::string(flag)});
}

}  // namespace pleat::cli
