#include "support/bits.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "base/error.h"

namespace pleat::test {

void Logits::append(const Logits& more) {
    if (n_vocab == 0) n_vocab = more.n_vocab;
    if (more.n_vocab != n_vocab) fail("rows of {} values below rows of {}", more.n_vocab, n_vocab);
    values.insert(values.end(), more.values.begin(), more.values.end());
}

void PrintTo(const Logits& logits, std::ostream* out) {
    *out << fmt::format("logits [{} rows][{}]", logits.rows(), logits.n_vocab);
}

double spread(const Logits& logits) {
    double sum_of_deviations = 0;
    for (size_t i = 0; i < logits.rows(); ++i) {
        double mean = 0;
        for (const float value : logits.row(i)) mean += value;
        mean /= static_cast<double>(logits.n_vocab);
        double variance = 0;
        for (const float value : logits.row(i)) variance += (value - mean) * (value - mean);
        sum_of_deviations += std::sqrt(variance / static_cast<double>(logits.n_vocab));
    }
    return logits.rows() == 0 ? 0 : sum_of_deviations / static_cast<double>(logits.rows());
}

std::optional<std::string> degeneracy(const Logits& logits) {
    if (logits.rows() == 0) return "there are no rows";
    for (size_t i = 0; i < logits.rows(); ++i) {
        const std::span<const float> row = logits.row(i);
        for (size_t token = 0; token < row.size(); ++token) {
            if (!std::isfinite(row[token])) {
                return fmt::format("row {}, token {} is {}", i, token, row[token]);
            }
        }
        const auto differs = [&](float value) { return value != row.front(); };
        if (std::ranges::none_of(row, differs)) {
            return fmt::format("all values of row {} are {}", i, row.front());
        }
    }
    return std::nullopt;
}

std::optional<std::string> bit_difference(const Logits& actual, const Logits& expected) {
    if (actual.n_vocab != expected.n_vocab || actual.values.size() != expected.values.size()) {
        return fmt::format("the shape is [{} rows][{}] ({} values), expected [{} rows][{}] ({})",
                           actual.rows(), actual.n_vocab, actual.values.size(), expected.rows(),
                           expected.n_vocab, expected.values.size());
    }
    size_t count = 0;
    size_t first = 0;
    double largest = 0;
    for (size_t i = 0; i < actual.values.size(); ++i) {
        const float a = actual.values[i];
        const float b = expected.values[i];
        if (std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b)) continue;
        if (count++ == 0) first = i;
        const double distance = std::abs(double{a} - double{b});
        if (!(distance <= largest)) largest = distance;  // so written, a NaN is kept
    }
    if (count == 0) return std::nullopt;
    const float a = actual.values[first];
    const float b = expected.values[first];
    return fmt::format(
        "{} of {} values differ; the first in row {} of {}, token {}: {:#010x} ({:.9g}), expected "
        "{:#010x} ({:.9g}); largest difference {:.3g}",
        count, actual.values.size(), first / actual.n_vocab, actual.rows(), first % actual.n_vocab,
        std::bit_cast<uint32_t>(a), a, std::bit_cast<uint32_t>(b), b, largest);
}

bool BitIdenticalMatcher::MatchAndExplain(const Logits& actual, std::ostream* listener) const {
    std::optional<std::string> fault = bit_difference(actual, expected_);
    if (!fault) {
        // Equal bits, so whatever is wrong with one side is wrong with the other.
        fault = degeneracy(actual);
        if (fault) *fault = "both are degenerate: " + *fault;
    }
    if (fault && listener != nullptr) *listener << *fault;
    return !fault;
}

void BitIdenticalMatcher::DescribeTo(std::ostream* out) const {
    *out << "is sound and bit-identical to ";
    PrintTo(expected_, out);
}

void BitIdenticalMatcher::DescribeNegationTo(std::ostream* out) const {
    *out << "is degenerate or differs in a bit from ";
    PrintTo(expected_, out);
}

}  // namespace pleat::test
