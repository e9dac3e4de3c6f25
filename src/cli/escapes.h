#pragma once

#include <string>
#include <string_view>

namespace pleat::cli {

/// llama.cpp's escapes of the command line: \n \r \t \' \" \\ and \xHH with two hexadecimal digits
/// become what they name; any other backslash stays.
std::string process_escapes(std::string_view text);

}  // namespace pleat::cli
