#pragma once

#include <string>
#include <vector>

#include "chat/tools.h"
#include "schema/grammar_text.h"

namespace pleat {

/// Adds the rule of one call in Gemma 4's form and returns its name. Plain objects, arrays and
/// texts are written in the model's own way, with sorted keys as its template has them; what says
/// more of its value is written as JSON, which the parser takes in its place. Throws Error when a
/// schema is not supported.
std::string add_gemma4_call(GrammarText& grammar, const std::vector<Tool>& tools);

}  // namespace pleat
