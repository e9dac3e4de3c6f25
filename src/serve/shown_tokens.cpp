#include "serve/shown_tokens.h"

#include <utility>

#include "serve/answer.h"

namespace pleat {

std::vector<TokenOutput> ShownTokens::take(std::string_view text,
                                           const std::vector<TokenOutput>& tokens) {
    n_shown_ += text.size();
    for (const TokenOutput& token : tokens) {
        n_made_ += characters_.feed(tokenizer_.piece(token.drawn.token, special_)).size();
        held_.push_back({token, n_made_});
    }
    std::vector<TokenOutput> shown;
    for (; !held_.empty() && held_.front().end <= n_shown_; held_.pop_front()) {
        shown.push_back(std::move(held_.front().token));
    }
    return shown;
}

std::vector<TokenOutput> shown_tokens(const Answer& answer, const Tokenizer& tokenizer,
                                      bool special) {
    return ShownTokens(tokenizer, special).take(answer.text, answer.tokens);
}

}  // namespace pleat
