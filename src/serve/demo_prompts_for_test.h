#pragma once

#include "serve/prompt_tokenizer.h"
#include "text/demo_model_for_test.h"

namespace pleat::test {

/// Of the demo model with a context that holds any text of a test.
inline const PromptTokenizer& demo_prompts() {
    static const PromptTokenizer prompts(demo_tokenizer(), 1 << 22);
    return prompts;
}

inline const ClientGone still_there = [] { return false; };

}  // namespace pleat::test
