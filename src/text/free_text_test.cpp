#include "text/free_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "text/demo_model_for_test.h"
#include "text/grammar.h"
#include "text/sampler.h"

namespace pleat {
namespace {

using test::demo_tokenizer;
using test::message_of;
using testing::HasSubstr;

std::vector<float> random_logits(uint32_t seed) {
    std::mt19937 rng(seed);
    std::normal_distribution<float> normal(0.0F, 3.0F);
    std::vector<float> logits(static_cast<size_t>(demo_tokenizer().n_vocab()));
    for (float& logit : logits) logit = normal(rng);
    return logits;
}

/// Text under a constraint, of tokens that are liked at random, the ones of `often` more than
/// others. `ended` tells whether an end token came.
std::string sampled(const GrammarConstraint& constraint, uint32_t seed, int n_tokens,
                    const std::string& often, bool* ended = nullptr) {
    Sampler sampler({.seed = seed, .constraint = constraint}, demo_tokenizer());
    std::string text;
    for (int i = 0; i < n_tokens; ++i) {
        std::vector<float> logits = random_logits(seed * 1000 + static_cast<uint32_t>(i));
        for (const char c : often) {
            for (const int32_t t : demo_tokenizer().tokenize({&c, 1}, false, false)) {
                logits[static_cast<size_t>(t)] += 8.0F;
            }
        }
        for (const int32_t t : demo_tokenizer().eog_tokens())
            logits[static_cast<size_t>(t)] = -5.0F;
        const int32_t token = sampler.sample(logits);
        sampler.accept(token);
        if (demo_tokenizer().is_eog(token)) {
            if (ended) *ended = true;
            break;
        }
        text += demo_tokenizer().piece(token, true);
    }
    return text;
}

bool takes(const GrammarConstraint& constraint, const std::string& text) {
    Sampler sampler({.constraint = constraint}, demo_tokenizer());
    for (const int32_t token : demo_tokenizer().tokenize(text, false, true)) {
        if (!sampler.fits_grammar(token)) return false;
        sampler.accept(token);
    }
    return sampler.fits_grammar(demo_tokenizer().eos());
}

TEST(GrammarTriggers, LeaveTheTextFreeUntilOneOfThemStandsInIt) {
    const GrammarConstraint constraint{"root ::= (\"abc\" | \"xa\") [0-9]", "root", {"abc", "xa"}};
    for (const std::string text : {"", "ab", "a\nb c \xE2\x82\xAC <|user|> ababab", "xx", "abac",
                                   "zabc1", "abxa7", "xxa1", "ababc5"}) {
        EXPECT_TRUE(takes(constraint, text)) << text;
    }
    for (const std::string text : {"abc", "zabc!", "abc12", "xa", "aabcc", "abc1abc1", "abxab"}) {
        EXPECT_FALSE(takes(constraint, text)) << text;
    }
}

TEST(GrammarTriggers, MayContainEachOther) {
    const GrammarConstraint constraint{"root ::= \"b\" [0-9]", "root", {"abc", "b"}};
    EXPECT_TRUE(takes(constraint, "ab1"));
    EXPECT_FALSE(takes(constraint, "abc"));
}

TEST(GrammarTriggers, HoldWhereverTokensBeginAndEnd) {
    const GrammarConstraint constraint{"root ::= \"the\" [0-9] \"!\"", "root", {"the"}};
    int triggered = 0;
    for (uint32_t seed = 0; seed < 60; ++seed) {
        SCOPED_TRACE(seed);
        bool ended = false;
        const std::string text = sampled(constraint, seed, 60, "the", &ended);
        const size_t at = text.find("the");
        if (at == std::string::npos) continue;
        ++triggered;
        const std::string rest = text.substr(at);
        EXPECT_TRUE(rest.size() <= 5 && (!ended || rest.ends_with('!'))) << text;
    }
    EXPECT_GT(triggered, 20);
}

TEST(GrammarTriggers, MayBeControlTokens) {
    const GrammarConstraint constraint{"root ::= \"<|user|>\" \"a\"", "root", {"<|user|>"}};
    EXPECT_TRUE(takes(constraint, "b<|user|>a"));
    EXPECT_FALSE(takes(constraint, "b<|user|>b"));
}

TEST(GrammarTriggers, DoNotClashWithTheGrammarsNames) {
    EXPECT_TRUE(takes({"root ::= free-0\nfree-0 ::= \"free\"", "root", {"free"}}, "a free"));
}

TEST(GrammarTriggers, MustBeTexts) {
    for (const std::string trigger : {"", "\xFF"}) {
        EXPECT_THAT(
            message_of([&] {
                Sampler({.constraint = {"root ::= \"a\"", "root", {trigger}}}, demo_tokenizer());
            }),
            HasSubstr("a trigger of a grammar must be a text"));
    }
}

TEST(GrammarTriggers, LeaveErrorsOfTheGrammarWhereTheyAre) {
    EXPECT_THAT(message_of([] {
                    Sampler({.constraint = {"root ::= \"a\"\n)", "root", {"a"}}}, demo_tokenizer());
                }),
                HasSubstr("line 2"));
}

TEST(FreeText, EndsWithTheFirstMark) {
    const std::vector<std::string> marks{"</t>"};
    std::string text = "root ::= text-0\nend ::= \"!\"\n";
    for (const GrammarRule& rule : free_text_rules("text", marks, "end", "")) {
        text += rule.name + " ::= " + rule.body + "\n";
    }
    const GrammarConstraint constraint{text};
    EXPECT_TRUE(takes(constraint, "</t>!"));
    EXPECT_TRUE(takes(constraint, "a <</t</t>!"));
    EXPECT_FALSE(takes(constraint, "a"));
    EXPECT_FALSE(takes(constraint, "a</t>"));
    EXPECT_FALSE(takes(constraint, "a</t>b</t>!"));
}

TEST(FreeText, OfAnyLengthCostsTheSame) {  // libllama's stacks must not grow
    const GrammarConstraint constraint{
        "root ::= \"\xC3\xA9t\xC3\xA9\"", "root", {"\xC3\xA9t\xC3\xA9"}};
    std::string text;
    for (int i = 0; i < 20'000; ++i) text += "t\xC3\xA9 ";
    EXPECT_TRUE(takes(constraint, text));
}

}  // namespace
}  // namespace pleat
