#include "jinja/lexer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace pleat::jinja {
namespace {

using testing::ElementsAre;

/// Texts as they are, tags as their words.
std::vector<std::string> shown(std::string_view source) {
    std::vector<std::string> result;
    for (const Piece& piece : lex(source)) {
        std::string all = piece.text;
        for (const Token& token : piece.tokens) all += (all.empty() ? "" : " ") + token.text;
        result.push_back(all);
    }
    return result;
}

std::string refusal(std::string_view source) {
    try {
        lex(source);
    } catch (const Error& e) {
        return e.what();
    }
    return {};
}

TEST(Lexer, SplitsTextAndTags) {
    EXPECT_THAT(shown("a{{ b.c|d('e') }}f{% if x %}g"),
                ElementsAre("a", "b . c | d ( e ) ", "f", "if x ", "g"));
    EXPECT_THAT(shown("{{ {'a': {}} }}"), ElementsAre("{ a : { } } "));
    EXPECT_THAT(shown("{ {% x %} }"), ElementsAre("{ ", "x ", " }"));
    EXPECT_THAT(shown("{{ 1.5e3 // 2 ** x }}"), ElementsAre("1.5e3 // 2 ** x "));
}

TEST(Lexer, StripsWhatTheTagsSay) {
    EXPECT_THAT(shown("a \n{%- x -%}\n b"), ElementsAre("a", "x ", "b"));
    EXPECT_THAT(shown("a\n \t{% x %}\nb"), ElementsAre("a\n", "x ", "b"));
    EXPECT_THAT(shown("a\n {%+ x +%}\nb"), ElementsAre("a\n ", "x ", "\nb"));
    EXPECT_THAT(shown("a {% x %}\n\n"), ElementsAre("a ", "x "));
    EXPECT_THAT(shown(" {{ x }}\n"), ElementsAre(" ", "x "));
    EXPECT_THAT(shown("a\n  {# b #}\nc"), ElementsAre("a\n", "c"));
    EXPECT_THAT(shown("{{ x }} {% y %}"), ElementsAre("x ", " ", "y "));
}

TEST(Lexer, LeavesRawTextAlone) {
    EXPECT_THAT(shown("{% raw %}{{ a }}{% endif %}{% endraw %}b"),
                ElementsAre("{{ a }}{% endif %}", "b"));
    EXPECT_EQ(refusal("a\n{% raw %}b"),
              "chat template: line 2, character 1: raw without its endraw");
}

TEST(Lexer, SaysWhatIsNoTag) {
    EXPECT_EQ(refusal("{{ a"), "chat template: line 1, character 1: tag without its }}");
    EXPECT_EQ(refusal("{{ (a] }}"), "chat template: line 1, character 6: unexpected ]");
    EXPECT_EQ(refusal("{{ a ; b }}"), "chat template: line 1, character 6: unexpected character ;");
    EXPECT_EQ(refusal("{{ '\\ud800' }}"), "chat template: line 1, character 7: no such character");
}

}  // namespace
}  // namespace pleat::jinja
