#include "cli/text_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/error.h"

namespace pleat::cli {

std::string read_text_file(const std::string& path, std::string_view what) {
    struct Close {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    std::unique_ptr<std::FILE, Close> opened;
    std::FILE* file = stdin;
    if (path != "-") {
        opened.reset(std::fopen(path.c_str(), "rb"));
        if (!opened) fail("{}: cannot open {}: {}", path, what, std::strerror(errno));
        file = opened.get();
    }
    std::string text;
    char buffer[65536];
    while (const size_t n = std::fread(buffer, 1, sizeof(buffer), file)) text.append(buffer, n);
    if (std::ferror(file) != 0) fail("{}: cannot read {}: {}", path, what, std::strerror(errno));
    return text;
}

}  // namespace pleat::cli
