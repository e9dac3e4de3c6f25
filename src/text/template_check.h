#pragma once

#include <string>
#include <string_view>

namespace pleat {

/// Throws Error, with line and character, when a Jinja text is larger or nested deeper than minja's
/// recursive parser and interpreter stand, or holds what they answer with a crash or without end:
///
/// - a division or remainder by anything but a number other than zero;
/// - a slice with a step and a bound, which is read outside of the string;
/// - `split` by an empty string, recursive loops, a call block that calls itself;
/// - macros inside of loops, macros and call blocks, whose calls could not be counted.
void check_template(std::string_view text);

}  // namespace pleat
