#include "text/grammar.h"

#include "base/error.h"
#include "text/grammar_rules.h"
#include "text/utf8_stream.h"

namespace pleat {

void check_grammar(std::string_view text, std::string_view root, const Tokenizer& tokenizer,
                   const GrammarLimits& limits) {
    if (text.size() > limits.bytes) {
        fail("grammar: {} bytes, at most {}", text.size(), limits.bytes);
    }
    // libllama takes C strings and trusts the encoding.
    if (text.find('\0') != std::string_view::npos) fail("grammar: holds a zero byte");
    if (!is_utf8(text)) fail("grammar: is not valid UTF-8");
    const GrammarRules rules = parse_grammar(text, tokenizer, limits);
    const int start = rules.find(root);
    if (start < 0) fail("grammar: has no rule named {}", root);
    check_left_recursion(rules, limits);
}

}  // namespace pleat
