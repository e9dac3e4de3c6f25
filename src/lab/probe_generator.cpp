#include "lab/probe_generator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

#include "lab/probe_words.h"
#include "lab/random.h"

namespace pleat {
namespace {

using namespace probe_words;

std::string_view pick(SplitMix64& random, Words words) {
    return words[random.below(static_cast<uint32_t>(words.size()))];
}

/// In [low, high].
int between(SplitMix64& random, int low, int high) {
    return low + static_cast<int>(random.below(static_cast<uint32_t>(high - low + 1)));
}

template <typename T>
void shuffle(SplitMix64& random, std::vector<T>& values) {
    for (size_t i = values.size(); i > 1; --i) {
        std::swap(values[i - 1], values[random.below(static_cast<uint32_t>(i))]);
    }
}

/// `n` different words, none of them `without`.
std::vector<std::string> pick_different(SplitMix64& random, Words words, size_t n,
                                        std::string_view without = {}) {
    std::vector<std::string> all;
    for (const std::string_view word : words) {
        if (word != without) all.emplace_back(word);
    }
    shuffle(random, all);
    all.resize(n);
    return all;
}

struct Problem {
    std::string text;
    int answer = 0;
};

/// corpus.py keeps the problems for probes whose CRC-32 is a multiple of 5.
bool reserved(std::string_view problem) {
    uint32_t crc = ~uint32_t{0};
    for (const char c : problem) {
        crc ^= static_cast<unsigned char>(c);
        for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320U : 0U);
    }
    return ~crc % 5 == 0;
}

Problem chain(SplitMix64& random) {
    const int a = between(random, 1, 20);
    const int b = between(random, 1, 20);
    const int c = between(random, 1, 9);
    if (random.below(10) < 3 && a + b > c) {
        return {fmt::format("{} + {} - {} =", a, b, c), a + b - c};
    }
    return {fmt::format("{} + {} + {} =", a, b, c), a + b + c};
}

Problem problem_of(SplitMix64& random, std::string_view form) {
    if (form == "chain") return chain(random);
    if (form == "sub2") {
        int a = between(random, 10, 99);
        int b = between(random, 1, 99);
        if (b > a) std::swap(a, b);
        return {fmt::format("{} - {} =", a, b), a - b};
    }
    if (form == "mul2") {
        const int a = between(random, 13, 99);
        const int b = between(random, 2, 9);
        return {fmt::format("{} x {} =", a, b), a * b};
    }
    const bool long_sum = form == "add3";
    const int a = long_sum ? between(random, 100, 899) : between(random, 10, 99);
    const int b = long_sum ? between(random, 10, 999) : between(random, 10, 99);
    return {fmt::format("{} + {} =", a, b), a + b};
}

constexpr std::string_view arithmetic_forms[] = {"add2", "sub2", "mul2", "chain", "add2",
                                                 "mul2", "add3", "sub2", "mul2",  "add3"};

Problem draw_problem(SplitMix64& random, std::string_view form, bool for_probes) {
    while (true) {
        Problem problem = problem_of(random, form);
        if (reserved(problem.text) == for_probes) return problem;
    }
}

std::string filler(SplitMix64& random) {
    const auto animal = [&] { return pick(random, animals); };
    const auto room = [&] { return pick(random, rooms); };
    const auto color = [&] { return pick(random, colors); };
    const auto role = [&] { return pick(random, roles); };
    const auto subject = [&]() -> std::string {
        const std::string_view a = animal();
        const std::string_view p = room();
        const std::string_view t = pick(random, things);
        const std::string_view s = pick(random, sizes);
        switch (random.below(8)) {
            case 0:
                return fmt::format("The {} in the {}", a, p);
            case 1:
                return fmt::format("The {} {}", color(), t);
            case 2:
                return fmt::format("The old {}", role());
            case 3:
                return fmt::format("A {} {} in the {}", s, t, p);
            case 4:
                return fmt::format("The {} of the village", role());
            case 5:
                return fmt::format("The {} roof of the {}", color(), p);
            case 6:
                return fmt::format("The door of the {}", p);
            default:
                return fmt::format("The {} near the {}", a, p);
        }
    };
    const auto predicate = [&]() -> std::string {
        switch (random.below(11)) {
            case 0:
                return "was quiet that day";
            case 1:
                return "looked better in the light";
            case 2:
                return "did not change for years";
            case 3:
                return "was known to all";
            case 4:
                return "made people smile";
            case 5:
                return "stood there since spring";
            case 6:
                return "was never seen again";
            case 7:
                return "seemed to wait for the rain";
            case 8:
                return fmt::format("belonged to the {}", role());
            case 9:
                return fmt::format("was painted {}", color());
            default:
                return fmt::format("was close to the {}", room());
        }
    };
    const std::string begin = subject();
    return fmt::format("{} {}.", begin, predicate());
}

std::string holder(SplitMix64& random) {
    if (random.below(5) > 0) return std::string(pick(random, names));
    const std::string_view first = pick(random, first_syllables);
    return std::string(first).append(pick(random, last_syllables));
}

struct Fact {
    std::string name;
    std::string code;

    std::string sentence() const { return fmt::format("The code of {} is {}.", name, code); }
};

std::vector<Fact> draw_facts(SplitMix64& random, size_t n) {
    std::vector<Fact> facts;
    while (facts.size() < n) {
        Fact fact{.name = holder(random), .code = fmt::format("{:04}", random.below(10000))};
        const auto same = [&](const Fact& other) {
            return other.name == fact.name || other.code == fact.code;
        };
        if (std::ranges::none_of(facts, same)) facts.push_back(std::move(fact));
    }
    return facts;
}

struct Question {
    std::string sub;
    std::string text;
    std::vector<std::string> options;
    std::string answer;
};

/// Three or four people, each above the next in one respect, told in any order.
Question order_question(SplitMix64& random) {
    struct Respect {
        std::string_view more, most, least;
    };
    constexpr std::array<Respect, 5> respects{{{"taller", "tallest", "shortest"},
                                               {"older", "oldest", "youngest"},
                                               {"faster", "fastest", "slowest"},
                                               {"stronger", "strongest", "weakest"},
                                               {"richer", "richest", "poorest"}}};
    const Respect& respect = respects[random.below(respects.size())];
    const size_t n = random.below(10) < 6 ? 3 : 4;
    const std::vector<std::string> people = pick_different(random, names, n);
    std::vector<std::string> told;
    for (size_t i = 0; i + 1 < n; ++i) {
        told.push_back(fmt::format("{} is {} than {}.", people[i], respect.more, people[i + 1]));
    }
    shuffle(random, told);
    const bool top = random.below(2) == 0;
    Question question{.sub = fmt::format("order{}", n),
                      .text = fmt::format("{} Who is the {}?", fmt::join(told, " "),
                                          top ? respect.most : respect.least),
                      .options = people,
                      .answer = top ? people.front() : people.back()};
    shuffle(random, question.options);
    return question;
}

/// Somebody takes a thing and goes about; the thing goes along until it is dropped.
Question place_question(SplitMix64& random) {
    const std::vector<std::string> who = pick_different(random, names, 2);
    const std::vector<std::string> where = pick_different(random, rooms, 4);
    const std::string_view thing = pick(random, things);
    std::string text =
        fmt::format("{0} went to the {1}. {0} took the {2}.", who[0], where[0], thing);
    std::string answer = where[0];
    if (random.below(10) < 7) {
        text += fmt::format(" {} went to the {}.", who[0], where[1]);
        answer = where[1];
    }
    if (random.below(2) == 0) text += fmt::format(" {} went to the {}.", who[1], where[2]);
    if (random.below(2) == 0) {
        text += fmt::format(" {0} dropped the {1}. {0} went to the {2}.", who[0], thing, where[3]);
    }
    std::vector<std::string> options;
    for (const std::string& place : where) {
        if (place != answer) options.push_back(place);
    }
    shuffle(random, options);
    options.back() = answer;
    shuffle(random, options);
    return {.sub = "place",
            .text = fmt::format("{} Where is the {}?", text, thing),
            .options = std::move(options),
            .answer = std::move(answer)};
}

/// How somebody feels after what happened last.
Question feeling_question(SplitMix64& random) {
    const std::vector<std::string> who = pick_different(random, names, 2);
    const std::string& n = who[0];
    const std::string& m = who[1];
    const std::string_view thing = pick(random, things);
    const std::string_view room = pick(random, rooms);
    const std::string_view animal = pick(random, animals);
    struct End {
        std::string text;
        std::string_view feeling;
    };
    struct Story {
        std::string begin;
        std::vector<End> ends;
    };
    const std::vector<Story> stories{
        {fmt::format("{} lost the {}.", n, thing),
         {{fmt::format("Then {} found the {} and gave it back.", m, thing), "glad"},
          {"Nobody could find it.", "sad"},
          {fmt::format("Then {} learned that {} had stolen it.", n, m), "angry"}}},
        {fmt::format("{} won the race.", n),
         {{"All the people cheered.", "proud"},
          {fmt::format("Then the judge gave the prize to {}.", m), "angry"},
          {fmt::format("But {} had hurt a leg.", n), "worried"}}},
        {fmt::format("{} heard a noise in the dark {}.", n, room),
         {{fmt::format("It was only the {}.", animal), "calm"},
          {"The noise came closer.", "afraid"},
          {fmt::format("It was {} with a gift.", m), "glad"}}},
        {fmt::format("{} waited for {} all day.", n, m),
         {{fmt::format("At last {} came home.", m), "calm"},
          {fmt::format("{} never came.", m), "sad"},
          {fmt::format("Then {} laughed at {}.", m, n), "angry"}}},
        {fmt::format("{} broke the {} of {}.", m, thing, n),
         {{fmt::format("Then {} said sorry and made a new one.", m), "calm"},
          {fmt::format("{} only laughed.", m), "angry"},
          {fmt::format("It had been a gift from the mother of {}.", n), "sad"}}},
        {fmt::format("{} got a letter from {}.", n, m),
         {{fmt::format("It said that {} was ill.", m), "worried"},
          {fmt::format("It said that {} would visit soon.", m), "glad"},
          {"It was still closed.", "curious"}}}};
    const Story& story = stories[random.below(static_cast<uint32_t>(stories.size()))];
    const End& end = story.ends[random.below(static_cast<uint32_t>(story.ends.size()))];
    Question question{.sub = "feeling",
                      .text = fmt::format("{} {} How does {} feel?", story.begin, end.text, n),
                      .options = pick_different(random, feelings, 3, end.feeling),
                      .answer = std::string(end.feeling)};
    question.options.push_back(question.answer);
    shuffle(random, question.options);
    return question;
}

Question count_question(SplitMix64& random) {
    const std::vector<std::string> who = pick_different(random, names, 2);
    const std::string_view thing = pick(random, things);
    const int had = between(random, 2, 9);
    const bool gives = random.below(2) == 0;
    const int moved = gives ? between(random, 1, had - 1) : between(random, 1, 9);
    const int answer = gives ? had - moved : had + moved;
    const std::string story = gives ? fmt::format("{} gave {} to {}.", who[0], moved, who[1])
                                    : fmt::format("{} gave {} more to {}.", who[1], moved, who[0]);
    Question question{.sub = "count",
                      .text = fmt::format("{0} had {1} {2}s. {3} How many {2}s does {0} have?",
                                          who[0], had, thing, story),
                      .options = {std::to_string(answer)},
                      .answer = std::to_string(answer)};
    while (question.options.size() < 3) {
        const std::string other = std::to_string(between(random, 1, 18));
        if (std::ranges::find(question.options, other) == question.options.end()) {
            question.options.push_back(other);
        }
    }
    shuffle(random, question.options);
    return question;
}

Question logic_question(SplitMix64& random, size_t i) {
    switch (i % 10) {
        case 0:
        case 3:
        case 6:
            return order_question(random);
        case 1:
        case 4:
        case 7:
            return place_question(random);
        case 9:
            return count_question(random);
        default:
            return feeling_question(random);
    }
}

/// The whole number nearest to a root of x: there is no tie, since (r + 1/2)^k is never whole.
uint64_t rounded_root(uint64_t x, int degree) {
    const auto power = [&](uint64_t r) { return degree == 2 ? r * r : r * r * r; };
    uint64_t low = 0;  // power(low) <= x < power(high)
    uint64_t high = degree == 2 ? uint64_t{1} << 32 : uint64_t{1} << 21;
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        (power(middle) <= x ? low : high) = middle;
    }
    // Up when x >= (low + 1/2)^degree: compared with what is whole on the right.
    const uint64_t rest = x - power(low);
    if (degree == 2) return rest > low ? low + 1 : low;
    // (low + 1/2)^3 = low^3 + (12 low^2 + 6 low + 1) / 8
    return 8 * rest >= 12 * low * low + 6 * low + 1 ? low + 1 : low;
}

/// A number of exactly so many digits.
uint64_t number_of(SplitMix64& random, int n_digits) {
    uint64_t value = 1 + random.below(9);
    for (int i = 1; i < n_digits; ++i) value = value * 10 + random.below(10);
    return value;
}

struct Guess {
    std::string about;
    uint64_t answer = 0;
};

Guess draw_guess(SplitMix64& random, size_t i) {
    const int step = static_cast<int>(i / 3 % 4);
    if (i % 3 == 0) {
        const uint64_t x = number_of(random, 9 + 2 * step);
        return {fmt::format("the square root of {}", x), rounded_root(x, 2)};
    }
    if (i % 3 == 1) {
        const uint64_t x = number_of(random, 12 + 2 * step);
        return {fmt::format("the cube root of {}", x), rounded_root(x, 3)};
    }
    const uint64_t a = number_of(random, 4 + step);
    const uint64_t b = number_of(random, 5 + step);
    return {fmt::format("{} times {}", a, b), a * b};
}

/// Adds the probe unless its prompt has come before.
class Collection {
  public:
    explicit Collection(std::string_view kind) : kind_(kind) {}

    size_t size() const { return probes_.size(); }
    std::vector<Probe> take() { return std::move(probes_); }

    void add(Probe probe, ReadingRule reading) {
        if (!prompts_.insert(probe.prompt).second) return;
        probe.id = fmt::format("{}-{:03}", kind_, probes_.size());
        probe.kind = kind_;
        probe.reading = reading;
        probe.max_new_tokens = usual_new_tokens(probe);
        probes_.push_back(std::move(probe));
    }

  private:
    std::string kind_;
    std::vector<Probe> probes_;
    std::unordered_set<std::string> prompts_;
};

}  // namespace

std::vector<Probe> arithmetic_probes(uint64_t seed, size_t n) {
    SplitMix64 random(seed);
    Collection probes("arithmetic");
    std::unordered_set<std::string> asked;
    while (probes.size() < n) {
        const std::string_view form = arithmetic_forms[probes.size() % 10];
        Probe probe{.sub = std::string(form)};
        for (int shot = 0; shot < 3; ++shot) {
            const Problem solved = draw_problem(random, pick(random, arithmetic_forms), false);
            probe.prompt += fmt::format("{} {}\n", solved.text, solved.answer);
        }
        const Problem problem = draw_problem(random, form, true);
        if (!asked.insert(problem.text).second) continue;
        probe.prompt += problem.text;
        probe.answer = fmt::format(" {}", problem.answer);
        probes.add(std::move(probe), ReadingRule::integer);
    }
    return probes.take();
}

std::vector<Probe> retrieval_probes(uint64_t seed, size_t n) {
    SplitMix64 random(seed);
    Collection probes("retrieval");
    while (probes.size() < n) {
        const size_t i = probes.size();
        const size_t n_filler = 2 + i % 10 * 3;
        const size_t depth = i / 10 % 5 * 25;  // per cent of the sentences before the fact
        const std::vector<Fact> facts = draw_facts(random, 3 + i / 50 % 3);
        std::vector<std::string> sentences;
        for (size_t k = 1; k < facts.size(); ++k) sentences.push_back(facts[k].sentence());
        for (size_t k = 0; k < n_filler; ++k) sentences.push_back(filler(random));
        shuffle(random, sentences);
        const size_t place = (sentences.size() * depth + 50) / 100;
        sentences.insert(sentences.begin() + static_cast<std::ptrdiff_t>(place),
                         facts[0].sentence());
        probes.add({.sub = fmt::format("fill{}-depth{}", n_filler, depth),
                    .prompt = fmt::format("{}\nWhat is the code of {}?", fmt::join(sentences, " "),
                                          facts[0].name),
                    .answer = " " + facts[0].code},
                   ReadingRule::phrase);
    }
    return probes.take();
}

std::vector<Probe> logic_probes(uint64_t seed, size_t n) {
    SplitMix64 random(seed);
    Collection probes("logic");
    while (probes.size() < n) {
        Question question = logic_question(random, probes.size());
        std::string prompt = fmt::format("{} Options: {}. Answer:", question.text,
                                         fmt::join(question.options, ", "));
        probes.add({.sub = std::move(question.sub),
                    .prompt = std::move(prompt),
                    .answer = " " + question.answer,
                    .options = std::move(question.options)},
                   ReadingRule::phrase);
    }
    return probes.take();
}

std::string guess_file(uint64_t seed, size_t n) {
    SplitMix64 random(seed);
    std::string out = "{\n";
    for (size_t i = 0; i < n; ++i) {
        const Guess guess = draw_guess(random, i);
        out += fmt::format(
            "  \"{}\": {{\"question\": \"What is {}? Guess the nearest whole number. Write only "
            "its digits, without commas, words or steps.\", \"answer\": {}}}{}\n",
            i, guess.about, guess.answer, i + 1 < n ? "," : "");
    }
    return out + "}\n";
}

std::vector<ShippedFile> shipped_probe_files() {
    constexpr uint64_t seed = 20261;  // another one would make other items under the same ids
    constexpr size_t n = 150;
    constexpr size_t n_guesses = 60;
    return {{"arithmetic.jsonl", probe_lines(arithmetic_probes(seed, n))},
            {"retrieval.jsonl", probe_lines(retrieval_probes(seed, n))},
            {"logic.jsonl", probe_lines(logic_probes(seed, n))},
            {"math_guess.json", guess_file(seed, n_guesses)}};
}

}  // namespace pleat
