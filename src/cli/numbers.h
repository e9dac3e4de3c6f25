#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

namespace pleat::cli {

/// Takes plain decimal digits (and a sign where `low` < 0) in [low, high]; the message says both.
CLI::Validator whole_number(int64_t low, int64_t high);

/// What CLI11 itself would let through or explain badly, for all flags of a program: digits with
/// separators, octal and hexadecimal numbers are refused; of a flag given twice the last one
/// counts, as in llama.cpp.
void tidy_flags(CLI::App& app);

/// Throws Error that names a flag which the command does not have, before its value could be taken
/// for something else.
void refuse_unknown_flags(const CLI::App& command, const std::vector<std::string>& arguments);

}  // namespace pleat::cli
