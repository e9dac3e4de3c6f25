#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace pleat {

/// Finds the texts that libllama takes out of a text as one token each before it tokenizes the
/// rest: those of control, unknown and user-defined tokens.
class SpecialTexts {
  public:
    explicit SpecialTexts(const Tokenizer& tokenizer);

    /// Where special texts stand that overlap each other, or one alone: at least one token.
    struct Stretch {
        size_t begin = 0;
        size_t end = 0;
        /// What stands before it and what stands from it on are tokenized as if each were alone.
        bool parts = false;
        bool control = false;  ///< it parts only where control tokens are read as such
    };
    /// The first that begins at `from` or later.
    std::optional<Stretch> next(std::string_view text, size_t from) const;

  private:
    struct Special {
        std::string text;
        bool control = false;
        bool operator<(const Special& other) const { return text < other.text; }
    };
    struct Match {
        size_t n = 0;                      ///< special texts that begin here
        const Special* longest = nullptr;  ///< null: none
    };
    struct Range {
        size_t begin = 0;
        size_t end = 0;
    };

    Match match(std::string_view text) const;
    bool parts(std::string_view text, const Stretch& stretch) const;

    std::vector<Special> specials_;  ///< sorted
    std::array<Range, 256> by_first_byte_ = {};
    bool strips_ = false;  ///< some take the space beside them
};

}  // namespace pleat
