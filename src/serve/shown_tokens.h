#pragma once

#include <cstddef>
#include <deque>
#include <string_view>
#include <vector>

#include "serve/job.h"
#include "text/tokenizer.h"
#include "text/utf8_stream.h"

namespace pleat {

struct Answer;

/// Holds an answer's tokens back until their text has been shown. Those of a stop string never are:
/// the tokens that are told make up the text, but for one that the stop string begins in.
class ShownTokens {
  public:
    /// `special`: control tokens show as text. The tokenizer must outlive it.
    ShownTokens(const Tokenizer& tokenizer, bool special)
        : tokenizer_(tokenizer), special_(special) {}

    /// Of what came next, those that are to be told now.
    std::vector<TokenOutput> take(std::string_view text, const std::vector<TokenOutput>& tokens);

  private:
    struct Held {
        TokenOutput token;
        size_t end;  ///< of its text in the answer
    };
    const Tokenizer& tokenizer_;
    bool special_;
    Utf8Stream characters_;  ///< makes the bytes of the tokens what the text shows of them
    size_t n_made_ = 0;
    size_t n_shown_ = 0;
    std::deque<Held> held_;
};

/// All of an answer that has ended.
std::vector<TokenOutput> shown_tokens(const Answer& answer, const Tokenizer& tokenizer,
                                      bool special);

}  // namespace pleat
