#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "lab/probes.h"
#include "support/temp_file.h"

namespace pleat {
namespace {

std::vector<Probe> parse(std::string_view text) { return parse_probe_file(text, "p.jsonl"); }

std::string message_of(std::string_view text) {
    try {
        parse(text);
    } catch (const Error& e) {
        return e.what();
    }
    return "no error";
}

/// A line with these fields beside the ones that every probe has.
std::string line_with(const std::string& more) {
    return R"({"id": "a", "kind": "k", "prompt": "p", "answer": " x")" + more + "}";
}

TEST(ProbeLines, HaveTheFieldsOfAProbe) {
    const std::vector<Probe> probes = parse(
        R"({"id": "l-0", "kind": "logic", "prompt": "Who?", "answer": " Ben", "options": ["Ann", "Ben"]})"
        "\n\r\n"
        R"({"id": "a-0", "kind": "arithmetic", "sub": "add2", "prompt": "1 + 1 =", "answer": " 2", "x": [{}]})");
    ASSERT_EQ(probes.size(), 2U);
    EXPECT_EQ(probes[0], (Probe{.id = "l-0",
                                .kind = "logic",
                                .prompt = "Who?",
                                .answer = " Ben",
                                .options = {"Ann", "Ben"},
                                .reading = ReadingRule::phrase,
                                .max_new_tokens = 8}));
    EXPECT_EQ(probes[1], (Probe{.id = "a-0",
                                .kind = "arithmetic",
                                .sub = "add2",
                                .prompt = "1 + 1 =",
                                .answer = " 2",
                                .reading = ReadingRule::integer,
                                .max_new_tokens = 6}));
    EXPECT_FALSE(probes[0].is_chat());
}

TEST(ProbeLines, MayBeChat) {
    const std::vector<Probe> probes = parse(
        R"({"id": "c", "kind": "chat", "answer": "4", "max_new_tokens": 9, "reading": "integer",)"
        R"( "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "2+2?"}]})");
    ASSERT_EQ(probes.size(), 1U);
    EXPECT_TRUE(probes[0].is_chat());
    EXPECT_EQ(probes[0].messages, (std::vector<ChatMessage>{{"system", "s"}, {"user", "2+2?"}}));
    EXPECT_EQ(probes[0].prompt, "");
    EXPECT_EQ(probes[0].max_new_tokens, 9);
    EXPECT_EQ(probes[0].reading, ReadingRule::integer);
}

TEST(ProbeLines, AreWrittenAsTheyAreRead) {
    const std::vector<Probe> probes = parse(
        R"({"id":"1","kind":"arithmetic","sub":"s","prompt":"ü\n","answer":" -7"})"
        "\n"
        R"({"id":"2","kind":"arithmetic","prompt":"p","answer":" x","reading":"phrase"})"
        "\n"
        R"({"id":"3","kind":"k","messages":[{"role":"user","content":"c"}],"answer":"x","options":["x","y"],"max_new_tokens":3})");
    const std::string text = probe_lines(probes);
    EXPECT_EQ(parse(text), probes);
    EXPECT_EQ(probe_lines(parse(text)), text);
}

TEST(ProbeLines, CannotSayRysProbes) {
    const std::vector<Probe> probes = parse(R"({"0": {"question": "q", "answer": 1}})");
    EXPECT_THROW(probe_lines(probes), Error);
}

TEST(ProbeLines, AreRefusedByName) {
    EXPECT_EQ(message_of("\n[1]"),
              "p.jsonl, line 2: not an object with id, kind, prompt and answer");
    EXPECT_EQ(message_of("{\"id\": \"a\"}"), "p.jsonl, line 1: the field kind is missing");
    EXPECT_EQ(message_of(R"({"id": 7, "kind": "k"})"),
              "p.jsonl, line 1: the field id is not a text");
    EXPECT_EQ(message_of(R"({"id": "", "kind": "k"})"), "p.jsonl, line 1: the field id is empty");
    EXPECT_EQ(message_of(R"({"id": "a", "kind": "k", "answer": "x"})"),
              "p.jsonl, line 1: the field prompt is missing");
    EXPECT_EQ(message_of(R"({"id": "a", "kind": "k", "prompt": "p", "answer": 4})"),
              "p.jsonl, line 1: the field answer is not a text");
    EXPECT_EQ(message_of(line_with("") + "\n" + line_with("")),
              "p.jsonl, line 2: the id a comes twice");
    EXPECT_EQ(message_of(line_with(R"(, "id": "b")")),
              "p.jsonl, line 1: the field id comes twice in one object");
    EXPECT_EQ(message_of(line_with(R"(, "sub": 1)")),
              "p.jsonl, line 1: the field sub is not a text");
    EXPECT_EQ(message_of(line_with(R"(, "options": "x")")),
              "p.jsonl, line 1: the field options is not a list");
    EXPECT_EQ(message_of(line_with(R"(, "options": ["y", "z"])")),
              "p.jsonl, line 1: the answer \"x\" is not among the options");
    EXPECT_EQ(message_of(line_with(R"(, "reading": "rys")")),
              "p.jsonl, line 1: the field reading is \"rys\"; it is phrase or integer");
    EXPECT_EQ(message_of(line_with(R"(, "messages": [])")),
              "p.jsonl, line 1: the field messages is an empty list");
    EXPECT_EQ(message_of(line_with(R"(, "messages": [{"role": "user"}])")),
              "p.jsonl, line 1, message 1: the field content is missing");
    EXPECT_EQ(message_of(line_with(R"(, "messages": ["hi"])")),
              "p.jsonl, line 1, message 1: not an object with role and content");
    for (const char* n : {"0", "-1", "1.5", "1e3", "99999999999999999999", "\"5\"", "1048577"}) {
        EXPECT_EQ(message_of(line_with(fmt::format(R"(, "max_new_tokens": {})", n))),
                  "p.jsonl, line 1: the field max_new_tokens is not a whole number in 1..1048576")
            << n;
    }
}

TEST(ProbeLines, NeedAnAnswerThatCouldBeRead) {
    const auto with_answer = [](const char* kind, const char* answer) {
        return message_of(fmt::format(
            R"({{"id": "a", "kind": "{}", "prompt": "p", "answer": "{}"}})", kind, answer));
    };
    EXPECT_EQ(with_answer("k", " Yes. No"),
              "p.jsonl, line 1: the answer \" Yes. No\" is not one phrase on one line, so it could "
              "not be read");
    EXPECT_EQ(with_answer("k", " a\\nb"),
              "p.jsonl, line 1: the answer \" a\\nb\" is not one phrase on one line, so it could "
              "not be read");
    EXPECT_EQ(with_answer("k", " . "),
              "p.jsonl, line 1: the answer \" . \" is not one phrase on one line, so it could not "
              "be read");
    EXPECT_EQ(with_answer("k", " Yes.\\n"), "no error");
    EXPECT_EQ(with_answer("arithmetic", " twelve"),
              "p.jsonl, line 1: the answer \" twelve\" is not an integer of at most 4300 digits");
    EXPECT_EQ(with_answer("arithmetic", " -12"), "no error");
}

TEST(ProbeFiles, AreRefusedWhenTheyAreNoJson) {
    EXPECT_EQ(message_of(""), "p.jsonl: the file has no probes");
    EXPECT_EQ(message_of("\n \n"), "p.jsonl: the file has no probes");
    EXPECT_EQ(message_of("{\"id\": \"a\","), "p.jsonl, line 1: not valid JSON at column 12");
    EXPECT_EQ(message_of("hello"), "p.jsonl, line 1: not valid JSON at column 1");
    EXPECT_EQ(message_of("{} {}"), "p.jsonl, line 1: not valid JSON at column 4");
    EXPECT_EQ(message_of(std::string("{\"id\": \"\xff\"}")),
              "p.jsonl, line 1: not valid JSON at column 9");
    EXPECT_EQ(message_of(std::string("\0\0\0", 3)), "p.jsonl, line 1: not valid JSON at column 1");
    EXPECT_EQ(message_of("{\"0\": {\n  \"question\": ?}}"),
              "p.jsonl: not valid JSON at line 2, column 15");
    EXPECT_EQ(message_of("{\"x\": 1e999}"),
              "p.jsonl, line 1: a number too large to read at column 11");
}

TEST(ProbeFiles, AreNotFollowedIntoTheDeep) {
    EXPECT_EQ(message_of("{\"x\": " + std::string(1000000, '[')),
              "p.jsonl, line 1: nested more than 64 levels deep, which no probe is");
    EXPECT_EQ(message_of("{\"0\": " + std::string(1000000, '[')),
              "p.jsonl: nested more than 64 levels deep, which no probe is");
}

TEST(ProbeFiles, AreBoundedInSize) {
    const std::string text(max_probe_file_bytes + 1, ' ');
    EXPECT_EQ(message_of(text),
              "p.jsonl: 67108865 bytes are too many for probes; at most 67108864 are read");
}

TEST(ProbeFiles, MayBeginWithAByteOrderMark) {
    EXPECT_EQ(parse("\xef\xbb\xbf" + line_with("")).size(), 1U);
}

TEST(ProbeFiles, AreReadFromDisk) {
    const test::TempFile file(".jsonl", line_with(""));
    EXPECT_EQ(read_probe_file(file.path()).size(), 1U);
    const test::TempFile empty(".jsonl", "");
    EXPECT_THROW(read_probe_file(empty.path()), Error);
    EXPECT_THROW(read_probe_file(empty.path() + "-none"), Error);
}

TEST(RysMath, BecomesAChatWithASystemMessage) {
    const ProbeOptions options{.rys_math_system = "Guess."};
    const std::vector<Probe> probes = parse_probe_file(
        R"({"0": {"question": "Root of 2?", "answer": 1},
            "17": {"question": "Much?", "answer": 1234567890123456789012345678}})",
        "m.json", options);
    ASSERT_EQ(probes.size(), 2U);
    EXPECT_EQ(probes[0],
              (Probe{.id = "rys_math-0",
                     .kind = "rys_math",
                     .messages = {{"system", "Guess."}, {"user", "/no_think Root of 2?"}},
                     .answer = "1",
                     .reading = ReadingRule::rys_math,
                     .max_new_tokens = 64}));
    EXPECT_EQ(probes[1].id, "rys_math-17");
    EXPECT_EQ(probes[1].answer, "1234567890123456789012345678");
}

TEST(RysMath, GoesWithoutPrefixAndSystemMessageWhenTheyAreEmpty) {
    const std::vector<Probe> probes =
        parse_probe_file(R"({"0": {"question": "q", "answer": 18446744073709551615}})", "m.json",
                         {.rys_prefix = "", .rys_math_system = "", .rys_max_new_tokens = 256});
    EXPECT_EQ(probes[0].messages, (std::vector<ChatMessage>{{"user", "q"}}));
    EXPECT_EQ(probes[0].max_new_tokens, 256);
    EXPECT_EQ(probes[0].answer, "18446744073709551615");
}

TEST(RysMath, KeepsTheDigitsOfNumbersAroundEveryBorder) {
    for (const std::string digits :
         {"0", "9007199254740993", "9223372036854775807", "9223372036854775808",
          "18446744073709551615", "18446744073709551616", "100000000000000000000",
          "1234567890123456789012345678901234567890"}) {
        EXPECT_EQ(parse(R"({"0": {"question": "q", "answer": )" + digits + "}}")[0].answer, digits);
    }
}

TEST(RysMath, IsRefusedByItem) {
    const std::string rule =
        "p.jsonl, item 3: the field answer is not a whole number >= 0 of at most 4300 digits";
    for (const char* answer : {"-5", "1.5", "1e5", "\"7\"", "null", "true", "[7]"}) {
        EXPECT_EQ(message_of(fmt::format(R"({{"3": {{"question": "q", "answer": {}}}}})", answer)),
                  rule)
            << answer;
    }
    EXPECT_EQ(message_of(R"({"3": {"question": "q"}})"),
              "p.jsonl, item 3: the field answer is missing");
    EXPECT_EQ(message_of(R"({"3": {"question": 4, "answer": 1}})"),
              "p.jsonl, item 3: the field question is not a text");
    EXPECT_EQ(message_of(R"({"3": 4})"), "p.jsonl, item 3: not an object");
    EXPECT_EQ(message_of(R"({"3": {"a": 1}})"),
              "p.jsonl, item 3: has neither question (RYS math) nor prompt (RYS EQ)");
    EXPECT_EQ(message_of(R"({"3": {"question": "q", "answer": 1}, "x": {}})"),
              "p.jsonl, item x: items are numbered");
    EXPECT_EQ(message_of(R"({"3": {"question": "q", "answer": 1}, "3": {}})"),
              "p.jsonl: the field 3 comes twice in one object");
}

/// An EQ item with these references.
std::string eq_file(const std::string& references) {
    return R"({"1": {"prompt": "How?")" + references + "}}";
}
constexpr const char* ten =
    R"("emotion1": "Glad", "emotion1_score": 6, "emotion2": "Sad", "emotion2_score": "1",)"
    R"( "emotion3": "Calm", "emotion3_score": 0, "emotion4": "Proud", "emotion4_score": 3.5)";

TEST(RysEq, BecomesAChatWithAReference) {
    const std::vector<Probe> probes = parse(eq_file(
        fmt::format(R"(, "reference_answer": {{{}}}, "reference_answer_fullscale": {{}})", ten)));
    ASSERT_EQ(probes.size(), 1U);
    EXPECT_EQ(probes[0], (Probe{.id = "rys_eq-1",
                                .kind = "rys_eq",
                                .messages = {{"user", "/no_think How?"}},
                                .reading = ReadingRule::rys_eq,
                                .max_new_tokens = 64,
                                .eq = EqReference{.emotions = {"Glad", "Sad", "Calm", "Proud"},
                                                  .scores = {6, 1, 0, 3.5}}}));
}

TEST(RysEq, FallsBackToTheFullScale) {
    const std::vector<Probe> probes =
        parse(eq_file(fmt::format(R"(, "reference_answer_fullscale": {{{}}})", ten)));
    EXPECT_EQ(probes[0].eq->scores[3], 3.5);
}

TEST(RysEq, IsRefusedByItem) {
    EXPECT_EQ(message_of(eq_file("")),
              "p.jsonl, item 1: the field reference_answer is not an object with emotions and "
              "scores");
    EXPECT_EQ(
        message_of(eq_file(R"(, "reference_answer": {"emotion1": "A", "emotion1_score": 11})")),
        "p.jsonl, item 1: the field emotion1_score is not a number in 0..10");
    EXPECT_EQ(
        message_of(eq_file(R"(, "reference_answer": {"emotion1": "A", "emotion1_score": "x"})")),
        "p.jsonl, item 1: the field emotion1_score is not a number in 0..10");
    EXPECT_EQ(
        message_of(eq_file(R"(, "reference_answer": {"emotion1": "A", "emotion1_score": "nan"})")),
        "p.jsonl, item 1: the field emotion1_score is not a number in 0..10");
    EXPECT_EQ(
        message_of(eq_file(R"(, "reference_answer": {"emotion1": "A", "emotion1_score": 1})")),
        "p.jsonl, item 1: the field emotion2 is missing");
    EXPECT_EQ(
        message_of(eq_file(
            R"(, "reference_answer": {"emotion1": "A", "emotion1_score": 0, "emotion2": "B", "emotion2_score": 0, "emotion3": "C", "emotion3_score": 0, "emotion4": "D", "emotion4_score": 0})")),
        "p.jsonl, item 1: all four scores are 0, so there is nothing to compare with");
    EXPECT_EQ(
        message_of(fmt::format(
            R"({{"1": {{"question": "q", "answer": 1}}, "2": {{"prompt": "p", "reference_answer": {{{}}}}}}})",
            ten)),
        "p.jsonl, item 2: an item of RYS math and one of RYS EQ in one file");
}

TEST(ProbeFileProperty, EveryCutOffFileIsRefusedInOneLine) {
    const std::string file =
        R"({"0": {"question": "q", "answer": 1234567890123456789012345678, "x": [1, {"y": null}]}})";
    for (size_t n = 1; n < file.size(); ++n) {
        const std::string message = message_of(file.substr(0, n));
        EXPECT_TRUE(message.starts_with("p.jsonl")) << n << ": " << message;
        EXPECT_EQ(message.find('\n'), std::string::npos) << n;
    }
}

}  // namespace
}  // namespace pleat
