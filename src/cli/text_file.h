#pragma once

#include <string>
#include <string_view>

namespace pleat::cli {

/// All bytes of a file; "-" is the standard input. `what` is for messages: "the prompt". Throws
/// Error with the path and the reason.
std::string read_text_file(const std::string& path, std::string_view what);

}  // namespace pleat::cli
