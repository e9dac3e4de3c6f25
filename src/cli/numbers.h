#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pleat::cli {

/// Takes plain decimal digits (and a sign where `low` < 0) in [low, high]; the message says both.
CLI::Validator whole_number(int64_t low, int64_t high);

/// "60%", "60 %" or "0.6": the ratio 0.6. Throws Error that names the flag unless it is a number of
/// 0 or more.
double parse_ratio(const std::string& text, std::string_view flag);

/// Four decimals, "n/a" for what is not finite: one item says nothing about the spread.
std::string decimals(double number);
/// "+0.1234 [+0.1000, +0.1500]".
std::string difference_text(double value, double low, double high);

/// What CLI11 itself would let through or explain badly, for all flags of a program: digits with
/// separators, octal and hexadecimal numbers are refused; of a flag given twice the last one
/// counts, as in llama.cpp.
void tidy_flags(CLI::App& app);

/// Throws Error that names a flag which the command does not have, before its value could be taken
/// for something else.
void refuse_unknown_flags(const CLI::App& command, const std::vector<std::string>& arguments);

}  // namespace pleat::cli
