#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pleat {

/// Longest integer that is read: Python's own limit, under which RYS runs.
inline constexpr size_t max_digits = 4300;

bool all_digits(std::string_view text);  ///< ASCII, at least one

/// The digits without leading zeros; "0" for zero.
std::string without_leading_zeros(std::string_view digits);

/// RYS's partial credit for an estimate of a whole number, both as decimal digits of any length.
/// With L the longer length and the shorter one padded on the right with zeros to a, e of L digits:
///
///     clamp((1 - |a - e| / max(a, e)) * (1 - (L - shorter length) / L), 0, 1), or 0 if both are 0
///
/// The quotient is correctly rounded and the rest in double, in this order, as Python computes it.
/// Mostly it rewards the right length and the right leading digits. Throws Error when one is no
/// number or longer than max_digits.
double partial_credit(std::string_view answer, std::string_view estimate);

}  // namespace pleat
