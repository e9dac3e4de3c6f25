#include "bake/output.h"

#include <sys/statvfs.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/checked.h"
#include "base/error.h"
#include "base/units.h"

namespace pleat {

void check_output(const std::string& out, const gguf::File& model, bool force) {
    std::error_code error;
    const std::filesystem::file_status status = std::filesystem::status(out, error);
    if (!std::filesystem::exists(status)) return;
    for (const MappedFile& part : model.parts()) {
        // Hard and symbolic links to it are the same file too.
        if (std::filesystem::equivalent(out, part.path(), error)) {
            fail("{}: is the model's own file {}; name another one to write", out, part.path());
        }
    }
    if (!std::filesystem::is_regular_file(status)) {
        fail("{}: is no regular file; name a file to write", out);
    }
    if (!force) fail("{}: exists; --force overwrites it", out);
}

void check_free_space(const std::string& out, uint64_t bytes) {
    std::string directory = std::filesystem::path(out).parent_path().string();
    if (directory.empty()) directory = ".";
    struct statvfs disk {};
    if (::statvfs(directory.c_str(), &disk) != 0) {
        fail("{}: cannot write to {}: {}", out, directory, std::strerror(errno));
    }
    const uint64_t free = checked_mul(disk.f_bavail, disk.f_frsize).value_or(UINT64_MAX);
    if (bytes > free) {
        fail("{}: needs {} bytes ({}), but the disk has {} bytes free ({})", out, bytes,
             format_bytes(bytes), free, format_bytes(free));
    }
}

}  // namespace pleat
