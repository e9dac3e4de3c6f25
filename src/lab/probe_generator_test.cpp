#include "lab/probe_generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "support/temp_dir.h"

namespace pleat {
namespace {

struct Maker {
    const char* kind;
    std::vector<Probe> (*make)(uint64_t, size_t);
};

class EveryKind : public testing::TestWithParam<Maker> {};
INSTANTIATE_TEST_SUITE_P(OfProbes, EveryKind,
                         testing::Values(Maker{"arithmetic", arithmetic_probes},
                                         Maker{"retrieval", retrieval_probes},
                                         Maker{"logic", logic_probes}),
                         [](const auto& kind) { return kind.param.kind; });

TEST_P(EveryKind, IsReadBackFromItsLines) {
    const std::vector<Probe> probes = GetParam().make(5, 120);
    EXPECT_EQ(parse_probe_file(probe_lines(probes), "made"), probes);
}

TEST_P(EveryKind, BeginsWithTheSameProbesWhenThereAreMore) {
    const std::vector<Probe> few = GetParam().make(7, 30);
    std::vector<Probe> many = GetParam().make(7, 90);
    many.resize(few.size());
    EXPECT_EQ(few, many);
    EXPECT_NE(few, GetParam().make(8, 30));
}

TEST_P(EveryKind, AsksNothingTwice) {
    std::set<std::string> prompts;
    for (const Probe& probe : GetParam().make(9, 400)) prompts.insert(probe.prompt);
    EXPECT_EQ(prompts.size(), 400U);
}

TEST_P(EveryKind, GivesFullScoreToItsOwnAnswers) {
    for (const Probe& probe : GetParam().make(3, 150)) {
        for (const char* after : {"", "\n", ".\nAnd", ". Then"}) {
            const ProbeResult result = read_answer(probe, probe.answer + after, TextEnd::complete);
            EXPECT_TRUE(result.exact && result.parsed && result.score == 1.0) << probe.id;
        }
    }
}

TEST_P(EveryKind, MayBeEmpty) { EXPECT_TRUE(GetParam().make(1, 0).empty()); }

TEST(ArithmeticProbes, AreRight) {
    for (const Probe& probe : arithmetic_probes(11, 200)) {
        // Every line is "A op B [op C] =" and its answer, the last line's apart.
        const std::string text = probe.prompt + probe.answer + "\n";
        size_t line = 0;
        while (line < text.size()) {
            const char* at = text.data() + line;
            char* next = nullptr;
            long long value = std::strtoll(at, &next, 10);
            while (next[1] != '=') {
                const char operation = next[1];
                const long long operand = std::strtoll(next + 2, &next, 10);
                if (operation == '+') value += operand;
                if (operation == '-') value -= operand;
                if (operation == 'x') value *= operand;
            }
            EXPECT_EQ(value, std::strtoll(next + 2, nullptr, 10)) << probe.id << ": " << text;
            line = text.find('\n', line) + 1;
        }
        EXPECT_EQ(std::ranges::count(text, '\n'), 4);
    }
}

TEST(ArithmeticProbes, HaveTheFormsInEqualSharesForEveryNumberOfTens) {
    std::map<std::string, int> forms;
    for (const Probe& probe : arithmetic_probes(1, 50)) ++forms[probe.sub];
    EXPECT_EQ(forms, (std::map<std::string, int>{
                         {"add2", 10}, {"add3", 10}, {"chain", 5}, {"mul2", 15}, {"sub2", 10}}));
}

TEST(RetrievalProbes, HoldTheCodeAtTheDepthTheySay) {
    for (const Probe& probe : retrieval_probes(13, 150)) {
        int filler = 0;
        int depth = 0;
        ASSERT_EQ(std::sscanf(probe.sub.c_str(), "fill%d-depth%d", &filler, &depth), 2);
        const size_t line = probe.prompt.find('\n');
        const std::string body = probe.prompt.substr(0, line);
        const std::string question = "What is the code of ";
        ASSERT_EQ(probe.prompt.find(question), line + 1);
        std::string name = probe.prompt.substr(line + 1 + question.size());
        name.pop_back();
        const std::string fact = "The code of " + name + " is" + probe.answer + ".";
        const size_t place = body.find(fact);
        ASSERT_NE(place, std::string::npos) << probe.id;
        EXPECT_EQ(body.find("The code of " + name + " ", place + 1), std::string::npos);
        const auto sentences = std::ranges::count(body, '.');
        EXPECT_GE(sentences, filler + 3);
        const auto before = std::count(body.begin(), body.begin() + static_cast<long>(place), '.');
        EXPECT_EQ(before, std::lround(static_cast<double>(sentences - 1) * depth / 100.0))
            << probe.id;
    }
}

TEST(LogicProbes, HaveTheirAnswerAmongDifferentOptions) {
    std::map<size_t, int> places;
    for (const Probe& probe : logic_probes(17, 400)) {
        const std::set<std::string> different(probe.options.begin(), probe.options.end());
        EXPECT_EQ(different.size(), probe.options.size()) << probe.id;
        EXPECT_GE(probe.options.size(), 3U);
        const auto found = std::ranges::find(probe.options, probe.answer.substr(1));
        ASSERT_NE(found, probe.options.end()) << probe.id;
        ++places[static_cast<size_t>(found - probe.options.begin())];
    }
    for (size_t i = 0; i < 3; ++i) EXPECT_GT(places[i], 80);  // no place gives it away
}

TEST(LogicProbes, OfOrderFollowFromWhatIsTold) {
    for (const Probe& probe : logic_probes(19, 200)) {
        if (!probe.sub.starts_with("order")) continue;
        const std::string& text = probe.prompt;
        const size_t asked = text.find("Who is the ");
        const std::string answer = probe.answer.substr(1);
        // The first of the chain is never below anybody, the last never above.
        bool above = false;
        bool below = false;
        for (size_t at = 0; at < asked;) {
            const size_t end = text.find(". ", at);
            const std::string sentence = text.substr(at, end - at);
            above = above || sentence.starts_with(answer + " is ");
            below = below || sentence.ends_with(" than " + answer);
            at = end + 2;
        }
        EXPECT_NE(above, below) << probe.id;
        const std::string word = text.substr(asked + 11, text.find('?', asked) - asked - 11);
        const std::set<std::string> most{"tallest", "oldest", "fastest", "strongest", "richest"};
        EXPECT_EQ(above, most.contains(word)) << probe.id;
    }
}

TEST(GuessFile, IsARysFileOfRightAnswers) {
    const std::vector<Probe> probes = parse_probe_file(guess_file(23, 120), "made");
    ASSERT_EQ(probes.size(), 120U);
    for (const Probe& probe : probes) {
        const std::string& text = probe.messages.back().content;
        uint64_t x = 0;
        uint64_t y = 0;
        // Within 64 bits by construction, so that squares and cubes of halves can be compared.
        const auto answer = std::stoull(probe.answer);
        const long double low = static_cast<long double>(answer) - 0.5L;
        const long double high = static_cast<long double>(answer) + 0.5L;
        if (std::sscanf(text.c_str(), "/no_think What is the square root of %lu", &x) == 1) {
            EXPECT_TRUE(low * low <= x && x <= high * high) << text;
        } else if (std::sscanf(text.c_str(), "/no_think What is the cube root of %lu", &x) == 1) {
            EXPECT_TRUE(low * low * low <= x && x <= high * high * high) << text;
        } else {
            ASSERT_EQ(std::sscanf(text.c_str(), "/no_think What is %lu times %lu", &x, &y), 2)
                << text;
            EXPECT_EQ(answer, x * y);
        }
    }
}

TEST(ShippedProbes, AreWhatTheGeneratorMakes) {
    for (const ShippedFile& file : shipped_probe_files()) {
        const std::string path = std::string(PLEAT_MODELS_DIR "/../data/probes/") + file.name;
        // Not EXPECT_EQ, which would print both. To make them anew: target pleat_probe_files.
        EXPECT_TRUE(read_bytes(path) == file.text) << path;
    }
}

TEST(ShippedProbes, HaveSomeFromTheFormsOfTheirKind) {
    size_t n = 0;
    for (const ShippedFile& file : shipped_probe_files()) {
        n += parse_probe_file(file.text, file.name).size();
    }
    EXPECT_EQ(n, 510U);
}

}  // namespace
}  // namespace pleat
