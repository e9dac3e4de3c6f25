#include "lab/rys_probes.h"

#include <gtest/gtest.h>

#include <string>

namespace pleat {
namespace {

TEST(WithoutThinking, DropsSpansAndWhatFollowsAnOpenOne) {
    EXPECT_EQ(without_thinking("  12 \n"), "12");
    EXPECT_EQ(without_thinking("<think>7\n8</think>\n9"), "9");
    EXPECT_EQ(without_thinking("1<think>2</think>3<think>4</think>5"), "135");
    EXPECT_EQ(without_thinking("1 <think>2 and on"), "1");
    EXPECT_EQ(without_thinking("<think></think>"), "");
    EXPECT_EQ(without_thinking("1</think>2"), "1</think>2");  // nothing was opened
}

TEST(ReadRysMath, TakesTheIntegerThatEarnsMost) {
    const ProbeResult result = read_rys_math("25774", "Between 10000 and 25773, or 99999.");
    EXPECT_EQ(result.read, "25773");
    EXPECT_NEAR(result.score, 0.999961, 5e-7);
    EXPECT_TRUE(result.parsed);
    EXPECT_TRUE(result.length_ok);
    EXPECT_FALSE(result.exact);
    EXPECT_FALSE(result.fallback);
}

TEST(ReadRysMath, KnowsTheAnswerItself) {
    const ProbeResult result = read_rys_math("1234567890123456789012345678",
                                             "1234567890123456789012345679 or "
                                             "1234567890123456789012345678");
    EXPECT_EQ(result.score, 1.0);  // of the first one too, rounded
    EXPECT_EQ(result.read, "1234567890123456789012345678");
    EXPECT_TRUE(result.exact);
}

TEST(ReadRysMath, BreaksNumbersAtSeparatorsSignsAndPoints) {
    EXPECT_EQ(read_rys_math("1000", "1,000").read, "1");
    EXPECT_EQ(read_rys_math("12", "-12").read, "12");
    EXPECT_EQ(read_rys_math("12", "12.75").read, "12");
    EXPECT_EQ(read_rys_math("12", "0012").read, "12");
}

TEST(ReadRysMath, FallsBackToTheThinkingWhenThereIsNoOther) {
    const ProbeResult result = read_rys_math("42", "<think>maybe 42</think> I do not know");
    EXPECT_TRUE(result.fallback);
    EXPECT_TRUE(result.exact);
    EXPECT_TRUE(result.parsed);
    EXPECT_FALSE(read_rys_math("42", "<think>42</think>41").fallback);
    EXPECT_EQ(read_rys_math("42", "<think>42</think>41").read, "41");
}

TEST(ReadRysMath, GivesNothingWithoutAnInteger) {
    EXPECT_EQ(read_rys_math("42", ""), ProbeResult{});
    EXPECT_EQ(read_rys_math("42", "about forty"), ProbeResult{});
    EXPECT_EQ(read_rys_math("42", std::string(5000, '4')), ProbeResult{});  // over Python's limit
}

TEST(ReadRysMath, GivesNothingForAnExactZeroButSaysThatItIsOne) {
    const ProbeResult result = read_rys_math("0", "5 or 0");
    EXPECT_EQ(result.score, 0.0);
    EXPECT_TRUE(result.exact);
}

constexpr const char* revised = "Revised scores:\nGlad: 6\nSad: 1\nAfraid: 0\nProud: 3\n";
constexpr const char* first_pass = "First pass scores:\nGlad: 4\nSad: 3\nAfraid: 0\nProud: 1.5\n";

TEST(ReadEqScores, MeansBothSections) {
    const EqReading reading = read_eq_scores(std::string(first_pass) + "Critique: no 9\n" +
                                             revised + "[End of answer] Glad: 10");
    EXPECT_EQ(reading, (EqReading{.scores = {5, 2, 0, 2.25}, .confidence = 1.0, .n_read = 4}));
}

TEST(ReadEqScores, IsLessSureOfOneSection) {
    EXPECT_EQ(read_eq_scores(revised),
              (EqReading{.scores = {6, 1, 0, 3}, .confidence = 0.9, .n_read = 4}));
    EXPECT_EQ(read_eq_scores(first_pass),
              (EqReading{.scores = {4, 3, 0, 1.5}, .confidence = 0.8, .n_read = 4}));
}

TEST(ReadEqScores, MatchesHeadingsWithoutRegardToCaseAndNumberedLines) {
    const EqReading reading =
        read_eq_scores("FIRST PASS SCORES:\n1. Glad: 4\n2.Sad:3\n3. Afraid:  0\n4. Proud:\n 2");
    EXPECT_EQ(reading, (EqReading{.scores = {4, 3, 0, 2}, .confidence = 0.8, .n_read = 4}));
}

TEST(ReadEqScores, EndSectionsAtTheirMarks) {
    EXPECT_EQ(read_eq_scores("First pass scores: A: 1 B: 2 Critique: C: 3 D: 4").confidence, 0.5);
    EXPECT_EQ(read_eq_scores("Revised scores: A: 1 B: 2 [END OF ANSWER] C: 3 D: 4").confidence,
              0.5);
}

TEST(ReadEqScores, FillsOneOfFourThatIsOutsideTheScale) {
    const EqReading reading = read_eq_scores("First pass scores: A: 1 B: 20 C: 3 D: 4 E: 5");
    EXPECT_EQ(reading, (EqReading{.scores = {1, 3, 4, 5}, .confidence = 0.8, .n_read = 3}));
}

TEST(ReadEqScores, TakesAnyFourNumbersElse) {
    EXPECT_EQ(read_eq_scores("I say 3, 12, 4.5 and 0 and 10 and 7"),
              (EqReading{.scores = {3, 4.5, 0, 10}, .confidence = 0.5, .n_read = 4}));
}

TEST(ReadEqScores, TakesFewerNumbersForEighths) {
    EXPECT_EQ(read_eq_scores("3 and 4"),
              (EqReading{.scores = {3, 4, 5, 5}, .confidence = 0.25, .n_read = 2}));
    EXPECT_EQ(read_eq_scores("nothing"), EqReading{});
}

TEST(ReadEqScores, DoNotLookIntoTheThinking) {
    EXPECT_EQ(read_eq_scores(std::string("<think>") + revised + "</think>"), EqReading{});
}

TEST(ReadEqScores, SurviveNumbersWithoutEnd) {
    EXPECT_EQ(read_eq_scores(std::string(100000, '9')), EqReading{});
    EXPECT_EQ(read_eq_scores("First pass scores: a:" + std::string(100000, ':')), EqReading{});
}

const EqReference reference{.emotions = {"Glad", "Sad", "Afraid", "Proud"}, .scores = {6, 1, 0, 3}};

TEST(ReadRysEq, ScoresAsRysDoes) {
    const ProbeResult perfect = read_rys_eq(reference, revised);
    EXPECT_DOUBLE_EQ(perfect.score, 0.9 * 1.0 + 0.1 * 0.5);
    EXPECT_TRUE(perfect.exact);
    EXPECT_DOUBLE_EQ(perfect.eq, 1.0);
    EXPECT_EQ(perfect.read, "6 1 0 3");
    // |4-6| + |3-1| + 0 + |1.5-3| = 5.5
    const ProbeResult first = read_rys_eq(reference, first_pass);
    EXPECT_DOUBLE_EQ(first.score, 0.8 * (1 - 5.5 / 40) + 0.2 * 0.5);
    EXPECT_FALSE(first.exact);
    EXPECT_TRUE(first.parsed);
    EXPECT_FALSE(first.fallback);
}

TEST(ReadRysEq, ScalesPredictionsInItsOwnNumberOnly) {
    const ProbeResult half = read_rys_eq(reference, "Revised scores: A: 3 B: 0.5 C: 0 D: 1.5");
    EXPECT_DOUBLE_EQ(half.eq, 1.0);
    EXPECT_DOUBLE_EQ(half.score, 0.9 * (1 - 5.0 / 40) + 0.05);
    EXPECT_FALSE(half.exact);
}

TEST(ReadRysEq, CallsAnAnswerInOtherFormAFallback) {
    const ProbeResult result = read_rys_eq(reference, "6 1 0 3");
    EXPECT_TRUE(result.fallback);
    EXPECT_TRUE(result.parsed);
    EXPECT_DOUBLE_EQ(result.score, 0.75);  // perfect, but half sure
    EXPECT_DOUBLE_EQ(result.eq, 1.0);
}

TEST(ReadRysEq, GivesHalfForNothingButDoesNotCallItRead) {
    const ProbeResult result = read_rys_eq(reference, "");
    EXPECT_DOUBLE_EQ(result.score, 0.5);
    EXPECT_FALSE(result.parsed);
    EXPECT_EQ(result.read, "");
    EXPECT_FALSE(read_rys_eq(reference, "6 1").parsed);
}

TEST(ReadRysEq, CannotScaleFourZeros) {
    const ProbeResult result = read_rys_eq(reference, "0 0 0 0");
    EXPECT_FALSE(result.parsed);
    EXPECT_DOUBLE_EQ(result.score, 0.5 * 0.75 + 0.25);
}

}  // namespace
}  // namespace pleat
