#include "lab/probes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "lab/phrase.h"

namespace pleat {
namespace {

Probe probe_of(ReadingRule reading, std::string answer) {
    return {.id = "a", .kind = "k", .answer = std::move(answer), .reading = reading};
}

ProbeResult read(const Probe& probe, std::string_view text) {
    return read_answer(probe, text, TextEnd::complete);
}

TEST(FirstPhrase, EndsWithItsLineOrSentence) {
    EXPECT_EQ(first_phrase(" glad.\nLena went").text, "glad");
    EXPECT_EQ(first_phrase(" tailor. In the end").text, "tailor");
    EXPECT_EQ(first_phrase("\n\n 3.5 apples! Yes").text, "3.5 apples");
    EXPECT_EQ(first_phrase("What? No").text, "What");
    EXPECT_EQ(first_phrase("well ...").text, "well");
    EXPECT_EQ(first_phrase("one\r\ntwo").text, "one");
    EXPECT_EQ(first_phrase("a b").text, "a b");
    EXPECT_EQ(first_phrase(" \n ").text, "");
    EXPECT_EQ(first_phrase("...").text, "");
}

TEST(FirstPhrase, KnowsWhetherMoreTextCouldLengthenIt) {
    EXPECT_TRUE(first_phrase("glad\n").ended);
    EXPECT_TRUE(first_phrase("glad. ").ended);
    EXPECT_FALSE(first_phrase("glad").ended);
    EXPECT_FALSE(first_phrase("3.").ended);  // may become 3.5
    EXPECT_FALSE(first_phrase("").ended);
}

TEST(ReadPhrase, IsRightOrWrong) {
    const Probe probe = probe_of(ReadingRule::phrase, " glad");
    const ProbeResult right = read(probe, " glad.\nAnna is");
    EXPECT_EQ(right.score, 1.0);
    EXPECT_TRUE(right.exact && right.parsed && right.length_ok);
    EXPECT_FALSE(right.cut);
    EXPECT_EQ(right.read, "glad");
    const ProbeResult wrong = read(probe, " Glad");
    EXPECT_EQ(wrong.score, 0.0);
    EXPECT_FALSE(wrong.exact);
    EXPECT_TRUE(wrong.parsed);
    EXPECT_FALSE(read(probe, "").parsed);
    EXPECT_FALSE(read(probe, " gladly").exact);
}

TEST(ReadPhrase, IsParsedWhenItIsOneOfTheOptions) {
    Probe probe = probe_of(ReadingRule::phrase, " glad");
    probe.options = {"glad", "sad"};
    EXPECT_TRUE(read(probe, " sad.").parsed);
    EXPECT_FALSE(read(probe, " angry.").parsed);
}

TEST(ReadPhrase, IsCutWhenTheTextEndsBeforeIt) {
    const Probe probe = probe_of(ReadingRule::phrase, " glad");
    EXPECT_TRUE(read_answer(probe, " gla", TextEnd::cut).cut);
    EXPECT_FALSE(read_answer(probe, " glad.\nAnd then", TextEnd::cut).cut);
    EXPECT_FALSE(read_answer(probe, " gla", TextEnd::complete).cut);
}

TEST(ReadInteger, GivesPartialCredit) {
    const Probe probe = probe_of(ReadingRule::integer, " 100");
    EXPECT_EQ(read(probe, " 100\n").score, 1.0);
    EXPECT_TRUE(read(probe, " 100.\n").exact);
    const ProbeResult near = read(probe, " 80\n20 + 3 = 23");
    EXPECT_NEAR(near.score, 100.0 / 800 * 2 / 3, 1e-15);  // 80 is read as 800
    EXPECT_FALSE(near.exact);
    EXPECT_FALSE(near.length_ok);
    EXPECT_EQ(near.read, "80");
    EXPECT_TRUE(read(probe, " 900").length_ok);
}

TEST(ReadInteger, TakesTheFirstOneInWordsButCallsOnlyTheNumberAloneExact) {
    const Probe probe = probe_of(ReadingRule::integer, "144");
    const ProbeResult result = read(probe, "The answer is 144, not 12.");
    EXPECT_EQ(result.read, "144");
    EXPECT_EQ(result.score, 1.0);
    EXPECT_FALSE(result.exact);
    EXPECT_FALSE(read(probe, "a gross").parsed);
    EXPECT_EQ(read(probe, "\n144 is on the next line").score, 1.0);
}

TEST(ReadInteger, MindsTheSign) {
    const Probe minus = probe_of(ReadingRule::integer, " -12");
    EXPECT_TRUE(read(minus, " -12").exact);
    EXPECT_EQ(read(minus, " 12").score, 0.0);
    EXPECT_EQ(read(minus, " -12 or so").score, 1.0);
    const Probe plus = probe_of(ReadingRule::integer, " 12");
    EXPECT_EQ(read(plus, " -12").score, 0.0);
    EXPECT_EQ(read(plus, " 12-5").read, "12");
    EXPECT_EQ(read(plus, "x-12").read, "12");  // no sign: it stands between two terms
}

TEST(ReadInteger, CountsAnExactZero) {
    EXPECT_EQ(read(probe_of(ReadingRule::integer, " 0"), " 0\n").score, 1.0);
    EXPECT_EQ(read(probe_of(ReadingRule::integer, " 0"), " 5\n").score, 0.0);
}

TEST(ReadInteger, RefusesNumbersWithoutEnd) {
    EXPECT_FALSE(read(probe_of(ReadingRule::integer, " 1"), std::string(100000, '1')).parsed);
}

TEST(ReadAnswer, ReadsRysProbesByTheirRules) {
    const Probe math = probe_of(ReadingRule::rys_math, "25774");
    const ProbeResult cut = read_answer(math, "1 2 25774", TextEnd::cut);
    EXPECT_TRUE(cut.exact);
    EXPECT_TRUE(cut.cut);
    Probe eq = probe_of(ReadingRule::rys_eq, "");
    eq.eq = EqReference{.emotions = {"A", "B", "C", "D"}, .scores = {1, 2, 3, 4}};
    EXPECT_EQ(read(eq, "1 2 3 4").score, 0.75);
    eq.eq.reset();
    EXPECT_THROW(read(eq, ""), Error);
}

TEST(Summarize, MeansEachPart) {
    std::vector<ProbeResult> results(4);
    results[0] = {.score = 1.0, .exact = true, .parsed = true, .length_ok = true};
    results[1] = {.score = 0.5, .parsed = true, .cut = true};
    EXPECT_EQ(
        summarize(results),
        (ProbeSummary{
            .n = 4, .score = 0.375, .exact = 0.25, .parsed = 0.5, .length_ok = 0.25, .cut = 0.25}));
    EXPECT_EQ(summarize({}), ProbeSummary{});
    EXPECT_EQ(item_scores(results), (ItemScores{.sum = {1, 0.5, 0, 0}, .weight = {1, 1, 1, 1}}));
}

TEST(SummarizeEq, KeepsApartWhatRysMixes) {
    std::vector<ProbeResult> results(2);
    results[0] = {.score = 0.95, .parsed = true, .confidence = 0.9, .eq = 0.8};
    results[1] = {.score = 0.5, .confidence = 0.0, .eq = 0.0};
    EXPECT_EQ(summarize_eq(results), (EqSummary{.n = 2,
                                                .eq_rys = 0.725,
                                                .parse_rate = 0.5,
                                                .mean_confidence = 0.45,
                                                .eq_parsed = 0.8}));
    EXPECT_EQ(summarize_eq({}), EqSummary{});
}

TEST(ClosedThinking, ReplacesAnOpenBlockAtTheEnd) {
    const std::string closed = "<think>\nI know.\n</think>\n";
    EXPECT_EQ(with_closed_thinking("a\n", "I know."), "a\n" + closed);
    EXPECT_EQ(with_closed_thinking("a\n<think>", "I know."), "a\n" + closed);
    EXPECT_EQ(with_closed_thinking("a\n<think>\n", "I know."), "a\n" + closed);
    EXPECT_EQ(with_closed_thinking("a\n<think>\n", ""), "a\n<think>\n");
}

}  // namespace
}  // namespace pleat
