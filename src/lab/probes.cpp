#include "lab/probes.h"

#include <algorithm>

#include "base/error.h"
#include "lab/partial_credit.h"
#include "lab/phrase.h"
#include "lab/rys_probes.h"

namespace pleat {
namespace {

/// The first integer of a phrase. A minus counts where it is not one between two terms.
struct Integer {
    bool negative = false;
    std::string_view digits;
};

Integer first_integer(std::string_view phrase) {
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    const auto begin = std::ranges::find_if(phrase, digit);
    const auto end = std::find_if_not(begin, phrase.end(), digit);
    const auto from = static_cast<size_t>(begin - phrase.begin());
    const bool minus = from > 0 && phrase[from - 1] == '-';
    return {.negative = minus && (from == 1 || phrase[from - 2] == ' '),
            .digits = phrase.substr(from, static_cast<size_t>(end - begin))};
}

ProbeResult read_integer(std::string_view right, std::string_view phrase) {
    ProbeResult out;
    const Integer read = first_integer(phrase);
    if (read.digits.empty() || read.digits.size() > max_digits) return out;
    const Integer answer = first_integer(right);
    out.parsed = true;
    out.read = fmt::format("{}{}", read.negative ? "-" : "", read.digits);
    out.exact = phrase == right;
    out.length_ok = read.digits.size() == answer.digits.size();
    if (out.exact) {
        out.score = 1.0;  // also for 0, to which RYS would give nothing
    } else if (read.negative == answer.negative) {
        out.score = partial_credit(answer.digits, read.digits);
    }
    return out;
}

ProbeResult read_phrase(const Probe& probe, std::string_view right, std::string_view phrase) {
    ProbeResult out;
    out.exact = phrase == right;
    out.score = out.exact ? 1.0 : 0.0;
    out.parsed = probe.options.empty()
                     ? !phrase.empty()
                     : std::ranges::find(probe.options, phrase) != probe.options.end();
    out.length_ok = phrase.size() == right.size();
    out.read = phrase;
    return out;
}

template <typename T>
double mean(std::span<const ProbeResult> results, T ProbeResult::*member) {
    double sum = 0.0;
    for (const ProbeResult& result : results) sum += static_cast<double>(result.*member);
    return results.empty() ? 0.0 : sum / static_cast<double>(results.size());
}

}  // namespace

std::string with_closed_thinking(std::string prompt, std::string_view sentence) {
    if (sentence.empty()) return prompt;
    for (const std::string_view open : {"<think>\n", "<think>"}) {
        if (!prompt.ends_with(open)) continue;
        prompt.resize(prompt.size() - open.size());
        break;
    }
    return prompt.append("<think>\n").append(sentence).append("\n</think>\n");
}

ProbeResult read_answer(const Probe& probe, std::string_view text, TextEnd end) {
    const bool cut = end == TextEnd::cut;
    ProbeResult out;
    switch (probe.reading) {
        case ReadingRule::phrase:
        case ReadingRule::integer: {
            const Phrase phrase = first_phrase(text);
            const std::string_view right = first_phrase(probe.answer).text;
            out = probe.reading == ReadingRule::integer ? read_integer(right, phrase.text)
                                                        : read_phrase(probe, right, phrase.text);
            out.cut = cut && !phrase.ended;
            return out;
        }
        case ReadingRule::rys_math:
            out = read_rys_math(probe.answer, text);
            break;
        case ReadingRule::rys_eq:
            if (!probe.eq) fail("probe {}: its emotions have no reference", probe.id);
            out = read_rys_eq(*probe.eq, text);
            break;
    }
    out.cut = cut;
    return out;
}

ProbeSummary summarize(std::span<const ProbeResult> results) {
    return {.n = results.size(),
            .score = mean(results, &ProbeResult::score),
            .exact = mean(results, &ProbeResult::exact),
            .parsed = mean(results, &ProbeResult::parsed),
            .length_ok = mean(results, &ProbeResult::length_ok),
            .cut = mean(results, &ProbeResult::cut)};
}

EqSummary summarize_eq(std::span<const ProbeResult> results) {
    std::vector<ProbeResult> parsed;
    std::ranges::copy_if(results, std::back_inserter(parsed), &ProbeResult::parsed);
    return {.n = results.size(),
            .eq_rys = mean(results, &ProbeResult::score),
            .parse_rate = mean(results, &ProbeResult::parsed),
            .mean_confidence = mean(results, &ProbeResult::confidence),
            .eq_parsed = mean(std::span<const ProbeResult>(parsed), &ProbeResult::eq)};
}

ItemScores item_scores(std::span<const ProbeResult> results) {
    ItemScores items;
    for (const ProbeResult& result : results) items.sum.push_back(result.score);
    items.weight.assign(results.size(), 1.0);
    return items;
}

}  // namespace pleat
