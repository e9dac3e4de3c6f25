#include "lab/rys_probes.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "lab/partial_credit.h"

namespace pleat {
namespace {

constexpr std::string_view white_space = " \t\n\v\f\r";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string_view trimmed(std::string_view text) {
    const size_t first = text.find_first_not_of(white_space);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(white_space) - first + 1);
}

/// Where the run of digits that begins at `from` ends.
size_t digits_end(std::string_view text, size_t from) {
    while (from < text.size() && is_digit(text[from])) ++from;
    return from;
}

std::vector<std::string_view> digit_runs(std::string_view text) {
    std::vector<std::string_view> runs;
    for (size_t i = 0; i < text.size(); ++i) {
        if (!is_digit(text[i])) continue;
        const size_t end = digits_end(text, i);
        if (end - i <= max_digits) runs.push_back(text.substr(i, end - i));
        i = end;
    }
    return runs;
}

/// A number of digits with at most one point between them.
struct Number {
    double value = 0.0;
    size_t end = 0;
};

Number number_at(std::string_view text, size_t from) {
    Number number{.end = digits_end(text, from)};
    if (number.end + 1 < text.size() && text[number.end] == '.' && is_digit(text[number.end + 1])) {
        number.end = digits_end(text, number.end + 1);
    }
    const char* const last = text.data() + number.end;
    if (std::from_chars(text.data() + from, last, number.value).ec != std::errc{}) {
        number.value = std::numeric_limits<double>::infinity();  // too many digits: over 10 too
    }
    return number;
}

bool in_scale(double value) { return value >= 0 && value <= 10; }

size_t find_heading(std::string_view text, std::string_view heading) {
    const auto same = [](char a, char b) { return lower(a) == lower(b); };
    const auto found = std::search(text.begin(), text.end(), heading.begin(), heading.end(), same);
    if (found == text.end()) return std::string_view::npos;
    return static_cast<size_t>(found - text.begin());
}

/// What stands between two headings; to the end of the text without the second.
std::optional<std::string_view> section(std::string_view text, std::string_view begin,
                                        std::string_view end) {
    const size_t from = find_heading(text, begin);
    if (from == std::string_view::npos) return std::nullopt;
    text.remove_prefix(from + begin.size());
    return text.substr(0, find_heading(text, end));
}

EqReading filled(std::span<const double> numbers, double confidence) {
    EqReading reading{.confidence = confidence, .n_read = numbers.size()};
    std::ranges::copy(numbers, reading.scores.begin());
    return reading;
}

/// "Name: 7" of the first four such places, at least three of them in 0..10.
std::optional<EqReading> labelled_scores(std::string_view text) {
    std::vector<double> numbers;
    size_t n_places = 0;
    for (size_t i = 1; i < text.size() && n_places < 4; ++i) {
        if (text[i] != ':' || !is_letter(text[i - 1])) continue;
        const size_t value = text.find_first_not_of(white_space, i + 1);
        if (value == std::string_view::npos || !is_digit(text[value])) continue;
        const Number number = number_at(text, value);
        ++n_places;
        if (in_scale(number.value)) numbers.push_back(number.value);
        i = number.end;
    }
    if (numbers.size() < 3) return std::nullopt;
    return filled(numbers, 0.0);
}

std::optional<EqReading> labelled_section(std::string_view text, std::string_view begin,
                                          std::string_view end) {
    const std::optional<std::string_view> found = section(text, begin, end);
    return found ? labelled_scores(*found) : std::nullopt;
}

EqReading any_numbers(std::string_view text) {
    std::vector<double> numbers;
    for (size_t i = 0; i < text.size() && numbers.size() < 4; ++i) {
        if (!is_digit(text[i])) continue;
        const Number number = number_at(text, i);
        if (in_scale(number.value)) numbers.push_back(number.value);
        i = number.end;
    }
    return filled(numbers, static_cast<double>(numbers.size()) / 8);
}

double sum(const std::array<double, 4>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0);
}

double distance(const std::array<double, 4>& a, const std::array<double, 4>& b) {
    double total = 0.0;
    for (size_t i = 0; i < a.size(); ++i) total += std::abs(a[i] - b[i]);
    return total;
}

std::array<double, 4> scaled_to_ten(std::array<double, 4> values) {
    const double factor = 10.0 / sum(values);
    for (double& value : values) value *= factor;
    return values;
}

}  // namespace

std::string without_thinking(std::string_view text) {
    constexpr std::string_view open = "<think>";
    constexpr std::string_view close = "</think>";
    std::string kept;
    while (true) {
        const size_t begin = text.find(open);
        kept.append(text.substr(0, begin));
        if (begin == std::string_view::npos) break;
        const size_t end = text.find(close, begin + open.size());
        if (end == std::string_view::npos) break;
        text.remove_prefix(end + close.size());
    }
    return std::string(trimmed(kept));
}

ProbeResult read_rys_math(std::string_view answer, std::string_view text) {
    ProbeResult best;
    const std::string spoken = without_thinking(text);
    std::vector<std::string_view> runs = digit_runs(spoken);
    if (runs.empty()) {
        runs = digit_runs(text);
        best.fallback = !runs.empty();
    }
    const std::string right = without_leading_zeros(answer);
    for (const std::string_view run : runs) {
        std::string estimate = without_leading_zeros(run);
        const double score = partial_credit(right, estimate);
        const bool exact = estimate == right;
        // A number of many digits may come so close that its credit rounds to 1 too.
        const bool better = score > best.score || (score == best.score && exact && !best.exact);
        if (best.parsed && !better) continue;
        best.parsed = true;
        best.score = score;
        best.exact = exact;
        best.length_ok = estimate.size() == right.size();
        best.read = std::move(estimate);
    }
    return best;
}

EqReading read_eq_scores(std::string_view text) {
    const std::string spoken = without_thinking(text);
    const auto revised = labelled_section(spoken, "Revised scores:", "[End of answer]");
    const auto first = labelled_section(spoken, "First pass scores:", "Critique:");
    if (!revised && !first) return any_numbers(spoken);
    EqReading reading = revised ? *revised : *first;
    reading.confidence = revised ? 0.9 : 0.8;
    if (!revised || !first) return reading;
    for (size_t i = 0; i < reading.scores.size(); ++i) {
        reading.scores[i] = (revised->scores[i] + first->scores[i]) / 2;
    }
    reading.n_read = std::min(revised->n_read, first->n_read);
    reading.confidence = 1.0;
    return reading;
}

ProbeResult read_rys_eq(const EqReference& reference, std::string_view text) {
    const EqReading reading = read_eq_scores(text);
    ProbeResult out;
    out.confidence = reading.confidence;
    const double raw = std::max(0.0, 1.0 - distance(reading.scores, reference.scores) / 40);
    out.score = out.confidence * raw + (1.0 - out.confidence) * 0.5;
    out.fallback = reading.confidence <= 0.5;
    out.length_ok = reading.n_read == 4;
    // Four zeros have no direction that could be compared.
    out.parsed = reading.confidence >= 0.5 && sum(reading.scores) > 0;
    if (out.parsed) {
        const auto predicted = scaled_to_ten(reading.scores);
        const auto right = scaled_to_ten(reference.scores);
        out.eq = std::max(0.0, 1.0 - distance(predicted, right) / 20);
        out.exact = reading.scores == reference.scores;
    }
    if (reading.n_read > 0) {
        const auto& s = reading.scores;
        out.read = fmt::format("{} {} {} {}", s[0], s[1], s[2], s[3]);
    }
    return out;
}

}  // namespace pleat
