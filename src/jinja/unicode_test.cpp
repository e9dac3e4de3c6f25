#include "jinja/unicode.h"

#include <gtest/gtest.h>

namespace pleat::jinja {
namespace {

TEST(Unicode, CountsCharactersAndKeepsWhatIsNone) {
    EXPECT_EQ(n_characters("h\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"), 4U);
    for (const std::string text :
         {"\xFF", "a\xC3", "\xE2\x82", "\xED\xA0\x80", "\xC0\x80", "\xF5\x80"}) {
        EXPECT_EQ(utf8(characters(text)), text);
    }
    EXPECT_EQ(n_characters("\xE2\x82"), 2U);
}

TEST(Unicode, KnowsWhiteSpaceAsPythonDoes) {
    EXPECT_EQ(leading_space("\xC2\xA0\xE3\x80\x80 a"), 6U);
    EXPECT_EQ(trailing_space("a \xE2\x80\xA8\x1C"), 5U);
    EXPECT_EQ(trailing_space(" \n"), 2U);
    EXPECT_EQ(leading_space("\xE2\x80\x8B"), 0U);  // of no width, but no white space
    EXPECT_EQ(trailing_space("\x80"), 0U);
}

TEST(Unicode, ChangesTheCaseOfLetters) {
    EXPECT_EQ(to_upper("a\xC3\xA9\xCF\x80\xD0\xB6\xC5\x82 1"),
              "A\xC3\x89\xCE\xA0\xD0\x96\xC5\x82 1");
    EXPECT_EQ(to_lower("A\xC3\x89\xCE\xA0\xD0\x96"), "a\xC3\xA9\xCF\x80\xD0\xB6");
}

}  // namespace
}  // namespace pleat::jinja
