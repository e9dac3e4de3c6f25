#include "cli/standard_output.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"

namespace pleat::cli {

void StandardOutput::write(std::string_view text) {
    if (error_ != 0 || text.empty()) return;
    const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
    if (!written || std::fflush(stdout) != 0) error_ = errno;
}

void StandardOutput::check() const {
    constexpr int broken_pipe_status = 141;
    if (error_ == EPIPE) throw CLI::RuntimeError(broken_pipe_status);
    if (failed()) fail("cannot write to the standard output: {}", std::strerror(error_));
}

}  // namespace pleat::cli
