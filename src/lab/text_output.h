#pragma once

#include <string>

namespace pleat {

/// Writes a result beside `path` first and renames it. Throws Error with the path and the reason.
void write_text(const std::string& path, const std::string& text);

}  // namespace pleat
