#pragma once

#include <string>

namespace pleat {

/// What a symbolic link stands for, whether that file is there or not; `path` itself when it is
/// none, or when links lead in a circle.
std::string link_target(const std::string& path);

}  // namespace pleat
