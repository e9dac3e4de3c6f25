#pragma once

#include <string>
#include <vector>

#include "chat/chat_parser.h"
#include "chat/tools.h"
#include "text/sampling_params.h"

namespace pleat {

struct CallGrammar {
    ToolForm form = ToolForm::none;
    std::vector<Tool> tools;  ///< that may be called, at least one
    bool parallel = false;    ///< several calls one after the other
    bool optional = false;    ///< the answer may also be text without any
};

/// What an answer with tool calls must look like: names of these tools, arguments by their schemas.
/// Optional calls sleep until the form's first mark stands in the text. Throws Error when a schema
/// is not supported.
GrammarConstraint call_constraint(const CallGrammar& calls);

/// The same for an answer that may (`open`: does) begin with reasoning. `may_end`: the text may
/// also end while the model still reasons.
GrammarConstraint after_reasoning(const GrammarConstraint& answer, const ReasoningMarks& marks,
                                  bool open, bool may_end);

}  // namespace pleat
