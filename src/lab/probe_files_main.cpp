#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <string>

#include "base/error.h"
#include "lab/probe_generator.h"

namespace {

void write(const std::string& path, const std::string& text) {
    std::ofstream out(path, std::ios::binary);
    if (!out.write(text.data(), static_cast<std::streamsize>(text.size())).flush()) {
        pleat::fail("{}: cannot be written", path);
    }
}

}  // namespace

/// Writes the probes that ship with Pleat: `pleat_probe_files data/probes`.
int main(int argc, char** argv) {
    try {
        if (argc != 2) pleat::fail("one argument: the folder to write probe files to");
        for (const pleat::ShippedFile& file : pleat::shipped_probe_files()) {
            write(fmt::format("{}/{}", argv[1], file.name), file.text);
        }
        return 0;
    } catch (const std::exception& e) {
        fmt::print(stderr, "{}\n", e.what());
        return 1;
    }
}
