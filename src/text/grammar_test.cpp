#include "text/grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "text/demo_model_for_test.h"
#include "text/sampler.h"

namespace pleat {
namespace {

using test::demo_tokenizer;
using test::message_of;
using testing::HasSubstr;

void check(const std::string& text) { check_grammar(text, "root", demo_tokenizer()); }

std::string refusal(const std::string& text) {
    return message_of([&] { check(text); });
}

/// Whether libllama takes the text; what it prints about a refusal is kept away.
bool libllama_takes(const std::string& text) {
    testing::internal::CaptureStderr();
    const llama_sampler_ptr sampler(
        llama_sampler_init_grammar(demo_tokenizer().vocab(), text.c_str(), "root"));
    testing::internal::GetCapturedStderr();
    return sampler != nullptr;
}

const std::string json_grammar = R"(# llama.cpp's grammars/json.gbnf, shortened
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::=
  "\"" (
    [^"\\\x7F\x00-\x1F] |
    "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4})
  )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws ::= | " " | "\n" [ \t]{0,20}
)";

TEST(Grammar, OfJsonIsTaken) {
    EXPECT_NO_THROW(check(json_grammar));
    EXPECT_TRUE(libllama_takes(json_grammar));
}

TEST(Grammar, MayNameTokens) {
    EXPECT_NO_THROW(check("root ::= <|end|> | <[72]> | !<[73]>"));
    EXPECT_THAT(refusal("root ::= <nothing>"),
                HasSubstr("<nothing> is not one token of this vocabulary"));
    EXPECT_THAT(refusal("root ::= <[1024]>"),
                HasSubstr("token 1024 is not in the vocabulary of 1024"));
    EXPECT_THAT(refusal("root ::= <[99999999999999999999]>"), HasSubstr("not in the vocabulary"));
}

TEST(Grammar, ThatDoesNotParseIsRefusedWithThePlace) {
    EXPECT_THAT(refusal("root ::= \"a\"\nroot ::= \"b"),
                HasSubstr("line 2, character 10: \" without its \""));
    EXPECT_THAT(refusal("root = x"), HasSubstr("line 1, character 6: expected ::="));
    EXPECT_THAT(refusal("root ::= (\"a\""), HasSubstr("expected )"));
    EXPECT_THAT(refusal("root ::= *"), HasSubstr("nothing to repeat before *"));
    EXPECT_THAT(refusal("root ::= [a"), HasSubstr("[ without its ]"));
    EXPECT_THAT(refusal("root ::= \"\\q\""), HasSubstr("unknown escape"));
    EXPECT_THAT(refusal("root ::= \"\\x4\""), HasSubstr("expected 2 hexadecimal digits"));
    EXPECT_THAT(refusal("root ::= x"), HasSubstr("rule x is used but not defined"));
    EXPECT_THAT(refusal("start ::= \"x\""), HasSubstr("has no rule named root"));
    EXPECT_THAT(refusal(""), HasSubstr("has no rule named root"));
    EXPECT_THAT(refusal("root ::= \"a\"{3,2}"), HasSubstr("{3,2}"));
    EXPECT_THAT(refusal("root ::= [0-9z-a]"),
                HasSubstr("line 1, character 14: range z-a ends before it begins"));
    EXPECT_THAT(refusal("root ::= [\\x7A-\\u0061]"), HasSubstr("range \\x7A-\\u0061 ends"));
    EXPECT_THAT(refusal("root ::= [\u00E9-\u00DF]"), HasSubstr("ends before it begins"));
    EXPECT_NO_THROW(check("root ::= [a-a\u00DF-\u00E9\\t-\\n\\U0001F600-\U0001F64F]"));
    EXPECT_THAT(refusal("root ::= \"\xFF\""), HasSubstr("not valid UTF-8"));
    EXPECT_THAT(refusal(std::string("root ::= \"a\0\"", 13)), HasSubstr("zero byte"));
}

TEST(GrammarAbuse, RefusesMoreThanALimit) {
    EXPECT_THAT(refusal("root ::= " + std::string(100'000, '(')),
                HasSubstr("more than 100 parentheses open"));
    EXPECT_THAT(refusal("root ::= \"a\"{1,99999999999999999999}"),
                HasSubstr("more than 2000 repetitions"));
    EXPECT_THAT(refusal("root ::= (\"a\"{0,50}){0,50}"),
                HasSubstr("more than 2000 rules after repetition"));
    EXPECT_THAT(refusal("root ::= \"" + std::string(10'000, 'a') + "\"{1000}"),
                HasSubstr("more than 500000 elements"));
    EXPECT_THAT(refusal(std::string(300'000, ' ')), HasSubstr("300000 bytes, at most 262144"));
}

TEST(Grammar, MayRepeatAsOftenAsLibllamaLets) {
    for (const auto& [text, taken] : std::vector<std::pair<std::string, bool>>{
             {"root ::= \"a\"{2000}", true},
             {"root ::= \"a\"{0,2000}", true},
             {"root ::= \"a\"{2001}", false},
             {"root ::= (\"a\"{0,19}){0,100}", true},   // 20 rules times 100
             {"root ::= (\"a\"{0,19}){0,101}", false},  // 20 times 101
             {"root ::= \"a\"{40}{50}", true},
             {"root ::= \"a\"{40}{51}", false}}) {
        EXPECT_EQ(libllama_takes(text), taken) << text;
        if (taken) {
            EXPECT_NO_THROW(check(text)) << text;
        } else {
            EXPECT_THAT(refusal(text), HasSubstr("repetition")) << text;
        }
    }
}

TEST(GrammarAbuse, RefusesAChainOfRulesThatIsTooLong) {
    std::string text = "root ::= r0\n";
    for (int i = 0; i < 10'000; ++i) text += fmt::format("r{} ::= r{}\n", i, i + 1);
    EXPECT_THAT(refusal(text + "r10000 ::= \"x\"\n"), HasSubstr("chain of more than 3000 rules"));
}

TEST(GrammarAbuse, RefusesASearchThatDoublesWithEachRule) {
    std::string text = "root ::= r0\n";
    for (int i = 0; i < 60; ++i) text += fmt::format("r{} ::= r{} \"a\" | r{}\n", i, i + 1, i + 1);
    EXPECT_THAT(refusal(text + "r60 ::= \"x\"\n"), HasSubstr("can begin in more than"));
}

TEST(GrammarRecursion, OnTheLeftIsRefused) {
    EXPECT_THAT(refusal("root ::= root \"a\" | \"b\""), HasSubstr("rule root is left-recursive"));
    EXPECT_THAT(refusal("root ::= x\nx ::= y \"a\"\ny ::= x | \"b\""),
                HasSubstr("is left-recursive"));
}

TEST(GrammarRecursion, OfARepetitionIsNamedForWhatItIs) {
    for (const std::string text :
         {R"(root ::= ("")*)", R"(root ::= "a"**)", R"(root ::= "a"?* "c")",
          "root ::= x+\nx ::= \"\" | \"a\"", R"(root ::= ("a" | ""){2,})"}) {
        EXPECT_THAT(refusal(text), HasSubstr("rule root repeats something that can be empty"))
            << text;
    }
    EXPECT_THAT(refusal("root ::= (root \"a\")*"), HasSubstr("rule root is left-recursive"));
}

TEST(GrammarRecursion, ThroughRulesThatCanBeEmptyIsRefused) {  // libllama would never come back
    EXPECT_THAT(refusal("root ::= a root \"c\" | \"d\"\na ::= b\nb ::= \"x\" | \"\""),
                HasSubstr("rule root is left-recursive"));
}

TEST(GrammarRecursion, OfARepetitionOfWhatCanBeEmptyIsHarmless) {
    const std::string text = "root ::= (ws | \"a\")* \"b\"\nws ::= [ ]*";
    EXPECT_NO_THROW(check(text));
    EXPECT_TRUE(libllama_takes(text));
}

TEST(GrammarRecursion, OnTheRightIsTaken) {
    EXPECT_NO_THROW(check("root ::= \"a\" root | \"b\""));
    EXPECT_NO_THROW(check("root ::= \"(\" root \")\" | \"\""));
}

TEST(Grammar, ThatLeavesOutTooMuchInARowIsRefused) {  // libllama would take seconds for a token
    EXPECT_THAT(refusal("root ::= ((\"a\"?){0,40}){0,40}"),
                HasSubstr("rule root can leave out more than 500 things in a row"));
    std::string many = "root ::= \"b\"";
    for (int i = 0; i < 501; ++i) many += " \"a\"?";
    EXPECT_THAT(refusal(many), HasSubstr("more than 500 things"));
    EXPECT_NO_THROW(check("root ::= ((\"a\"?){0,20}){0,20}"));
    EXPECT_NO_THROW(check("root ::= (\"a\"{0,40} \"b\"){0,40} [c-d]{0,2000}"));
    EXPECT_NO_THROW(check("root ::= (\"a\" root?)? [a-z]*"));
}

TEST(GrammarProperty, WhatPassesIsTakenByLibllama) {
    const std::vector<std::string> parts{
        "\"a\"", "\"\"", "[a-z]", "[^\"]",  "x",     "y",      "(",      ")",     "|",
        "*",     "+",    "?",     "{2}",    "{1,3}", "{0,}",   ".",      " ",     "\n",
        "\\",    "\"",   "[",     "<[72]>", "#",     "x ::= ", "y ::= ", "!<[3]>"};
    int taken = 0;
    for (uint32_t seed = 0; seed < 3000; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 rng(seed);
        std::string text = "root ::= ";
        for (uint32_t i = rng() % 8; i > 0; --i) text += parts[rng() % parts.size()];
        text += "\nx ::= \"x\" | [0-9] y\ny ::= \"y\"";
        bool passes = true;
        try {
            check(text);
        } catch (const Error&) {
            passes = false;
        }
        if (passes) {
            EXPECT_TRUE(libllama_takes(text)) << text;
            ++taken;
        }
    }
    EXPECT_GT(taken, 300);
}

}  // namespace
}  // namespace pleat
