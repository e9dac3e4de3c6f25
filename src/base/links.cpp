#include "base/links.h"

#include <filesystem>
#include <system_error>

namespace pleat {

std::string link_target(const std::string& path) {
    namespace fs = std::filesystem;
    fs::path target = path;
    std::error_code error;
    for (int i = 0; i < 40; ++i) {  // as deep as Linux follows
        if (!fs::is_symlink(target, error)) return target.string();
        target = target.parent_path() / fs::read_symlink(target, error);
    }
    return path;
}

}  // namespace pleat
