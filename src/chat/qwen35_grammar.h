#pragma once

#include <string>
#include <vector>

#include "chat/tools.h"
#include "schema/grammar_text.h"

namespace pleat {

/// Adds the rule of one call in Qwen3.5's form and returns its name. Plain texts stand without
/// quotes, everything else as JSON. Throws Error when a schema says more of an object than which
/// properties it has.
std::string add_qwen35_call(GrammarText& grammar, const std::vector<Tool>& tools);

}  // namespace pleat
