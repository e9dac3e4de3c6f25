#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "chat/tools.h"

namespace pleat {

/// Messages for a template that knows no tools: the system message describes the tools and how to
/// call them in Hermes' form, calls stand in the assistant's text, and what tools answered is said
/// by the user. Messages that are malformed are left as they are.
nlohmann::ordered_json described_tools(const nlohmann::ordered_json& messages,
                                       const std::vector<Tool>& tools);

}  // namespace pleat
