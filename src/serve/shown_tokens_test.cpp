#include "serve/shown_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/answer.h"
#include "text/demo_model_for_test.h"

namespace pleat {
namespace {

using test::demo_tokenizer;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<TokenOutput> tokens_of(const std::string& text) {
    std::vector<TokenOutput> tokens;
    for (const int32_t token : demo_tokenizer().tokenize(text, false, true)) {
        tokens.push_back({.drawn = {.token = token}});
    }
    return tokens;
}

std::vector<std::string> texts(const std::vector<TokenOutput>& tokens) {
    std::vector<std::string> result;
    for (const TokenOutput& token : tokens) {
        result.push_back(demo_tokenizer().piece(token.drawn.token, false));
    }
    return result;
}

std::vector<std::string> shown(const std::string& text, const std::string& drawn) {
    return texts(shown_tokens({.text = text, .tokens = tokens_of(drawn)}, demo_tokenizer(), false));
}

TEST(ShownTokens, MakeUpTheText) {
    ASSERT_THAT(texts(tokens_of(" of Rolf is")), ElementsAre(" of", " Rolf", " is"));
    EXPECT_THAT(shown(" of Rolf is", " of Rolf is"), ElementsAre(" of", " Rolf", " is"));
    EXPECT_THAT(shown(" of Rolf", " of Rolf is"), ElementsAre(" of", " Rolf"));
    EXPECT_THAT(shown(" of", " of Rolf is"), ElementsAre(" of"));
    EXPECT_THAT(shown("", " of Rolf is"), IsEmpty());
}

TEST(ShownTokens, LeaveOutOneThatTheStopStringBeginsIn) {
    EXPECT_THAT(shown(" of Rolf ", " of Rolf is"), ElementsAre(" of", " Rolf"));
}

TEST(ShownTokens, HoldThoseWithoutATextOfTheirOwn) {
    EXPECT_THAT(shown(" of", " of<|end|>"), ElementsAre(" of", ""));
    EXPECT_EQ(shown("", "\u20ac").size(), 2U) << "the last byte makes the character";
    EXPECT_EQ(shown("\u20ac", "\u20ac").size(), 3U);
}

TEST(ShownTokens, AreHeldBackAsTheirTextIs) {
    ShownTokens tokens(demo_tokenizer(), false);
    const auto take = [&](std::string_view text, const std::string& drawn) {
        return texts(tokens.take(text, tokens_of(drawn)));
    };
    EXPECT_THAT(take(" o", " of"), IsEmpty());
    EXPECT_THAT(take("f Rol", " Rolf"), ElementsAre(" of"));
    EXPECT_THAT(take("", " is"), IsEmpty());
    EXPECT_THAT(take("f is", ""), ElementsAre(" Rolf", " is"));
}

}  // namespace
}  // namespace pleat
