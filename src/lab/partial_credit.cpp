#include "lab/partial_credit.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/error.h"

namespace pleat {
namespace {

/// A whole number in base 10^9, least significant limb first, always of the same count of limbs.
class BigInteger {
  public:
    explicit BigInteger(std::string_view digits) : limbs_(digits.size() / n_limb_digits + 2) {
        for (size_t i = 0; i < digits.size(); ++i) {
            uint32_t& limb = limbs_[(digits.size() - 1 - i) / n_limb_digits];
            limb = limb * 10 + static_cast<uint32_t>(digits[i] - '0');
        }
    }

    bool zero() const {
        return std::ranges::all_of(limbs_, [](uint32_t limb) { return limb == 0; });
    }

    bool less(const BigInteger& other) const {
        return std::lexicographical_compare(limbs_.rbegin(), limbs_.rend(), other.limbs_.rbegin(),
                                            other.limbs_.rend());
    }

    void twice() {
        uint32_t carry = 0;
        for (uint32_t& limb : limbs_) {
            limb = 2 * limb + carry;
            carry = limb >= base ? 1 : 0;
            limb -= carry * base;
        }
    }

    /// `other` must not be larger.
    void subtract(const BigInteger& other) {
        uint32_t borrow = 0;
        for (size_t i = 0; i < limbs_.size(); ++i) {
            const uint32_t taken = other.limbs_[i] + borrow;
            borrow = limbs_[i] < taken ? 1 : 0;
            limbs_[i] = limbs_[i] + borrow * base - taken;
        }
    }

  private:
    static constexpr size_t n_limb_digits = 9;
    static constexpr uint32_t base = 1'000'000'000;

    std::vector<uint32_t> limbs_;
};

/// part / whole for 0 <= part <= whole, whole > 0, rounded to the nearest double, ties to even.
double quotient(BigInteger part, const BigInteger& whole) {
    if (part.zero()) return 0.0;
    int exponent = 0;
    while (part.less(whole)) {
        part.twice();
        // Far under what could be seen beside 1.
        if (--exponent < -1000) return 0.0;
    }
    part.subtract(whole);
    uint64_t bits = 1;
    for (int i = 0; i < 53; ++i) {  // one more than a double holds, to round by
        part.twice();
        bits *= 2;
        if (part.less(whole)) continue;
        part.subtract(whole);
        ++bits;
    }
    const bool half = (bits & 1) != 0;
    bits /= 2;
    if (half && (!part.zero() || (bits & 1) != 0)) ++bits;
    return std::ldexp(static_cast<double>(bits), exponent - 52);
}

void check_number(std::string_view digits) {
    if (!all_digits(digits)) fail("\"{}\" is no whole number >= 0 in digits", digits);
    if (digits.size() > max_digits) {
        fail("a number of {} digits; at most {} are read", digits.size(), max_digits);
    }
}

}  // namespace

bool all_digits(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::string without_leading_zeros(std::string_view digits) {
    const size_t first = digits.find_first_not_of('0');
    return first == std::string_view::npos ? "0" : std::string(digits.substr(first));
}

double partial_credit(std::string_view answer, std::string_view estimate) {
    check_number(answer);
    check_number(estimate);
    std::string a = without_leading_zeros(answer);
    std::string e = without_leading_zeros(estimate);
    const size_t length = std::max(a.size(), e.size());
    const size_t padding = length - std::min(a.size(), e.size());
    a.resize(length, '0');
    e.resize(length, '0');
    const BigInteger larger(std::max(a, e));  // of equal length, digits compare as numbers do
    if (larger.zero()) return 0.0;
    BigInteger difference = larger;
    difference.subtract(BigInteger(std::min(a, e)));
    const double credit = (1.0 - quotient(difference, larger)) *
                          (1.0 - static_cast<double>(padding) / static_cast<double>(length));
    return std::clamp(credit, 0.0, 1.0);
}

}  // namespace pleat
