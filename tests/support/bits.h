#pragma once

#include <gmock/gmock.h>

#include <cstddef>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

namespace pleat::test {

/// Rows of logits, row-major [rows][n_vocab], in the order in which they were asked for. Serves for
/// hidden states too, with their width as `n_vocab`.
struct Logits {
    size_t n_vocab = 0;
    std::vector<float> values;

    size_t rows() const { return n_vocab == 0 ? 0 : values.size() / n_vocab; }
    std::span<const float> row(size_t i) const {
        return std::span(values).subspan(i * n_vocab, n_vocab);
    }
    /// Adds rows of the same width below these.
    void append(const Logits& more);
};

/// GoogleTest prints the shape, not a hundred thousand numbers.
void PrintTo(const Logits& logits, std::ostream* out);

/// Root mean square distance of the values of each row from the row's mean, averaged over the rows.
/// A model of random weights worth testing with has about 2.
double spread(const Logits& logits);

/// Why these logits prove nothing (no rows, a value that is not finite, a row of equal values), or
/// nothing when they are sound.
std::optional<std::string> degeneracy(const Logits& logits);

/// How `actual` differs in bits from `expected`: how many values, the first one's row and token
/// with both bit patterns, the largest distance. Nothing when all bits agree.
std::optional<std::string> bit_difference(const Logits& actual, const Logits& expected);

/// Equal in shape and in every bit (a NaN equals only the same NaN, and 0 is not -0), and sound: a
/// model that computes nothing must not pass for one that computes the same.
class BitIdenticalMatcher {
  public:
    using is_gtest_matcher = void;
    explicit BitIdenticalMatcher(Logits expected) : expected_(std::move(expected)) {}

    bool MatchAndExplain(const Logits& actual, std::ostream* listener) const;
    void DescribeTo(std::ostream* out) const;
    void DescribeNegationTo(std::ostream* out) const;

  private:
    Logits expected_;
};

inline testing::Matcher<const Logits&> BitIdenticalTo(Logits expected) {
    return BitIdenticalMatcher(std::move(expected));
}

}  // namespace pleat::test
