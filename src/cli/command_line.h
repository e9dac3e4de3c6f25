#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace pleat::cli {

/// The command line that gives what was parsed, for a profile's provenance: arguments first, then
/// flags in the order of the help.
std::vector<std::string> command_line(const CLI::App& command);

}  // namespace pleat::cli
