#pragma once

#include <string_view>

namespace pleat {

/// The page of a report, with {{title}} (HTML text) and {{data}} (JSON in a script element) to be
/// filled in. It loads nothing, and texts of the data become text nodes, never markup.
std::string_view report_page();

}  // namespace pleat
