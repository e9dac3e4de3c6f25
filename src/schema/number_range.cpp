#include "schema/number_range.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"

namespace pleat {
namespace {

constexpr size_t usual_digits = 16;
constexpr size_t exact_digits = 15;  // decimals that long are different doubles

std::string digits(size_t least, size_t most) {
    if (most == 0) return {};
    if (least == 1 && most == 1) return "[0-9]";
    return least == most ? fmt::format("[0-9]{{{}}}", least)
                         : fmt::format("[0-9]{{{},{}}}", least, most);
}

/// A digit of a range; empty when there is none.
std::string digit(char first, char last) {
    if (first > last) return {};
    if (first == last) return fmt::format("\"{}\"", first);
    return fmt::format("[{}-{}]", first, last);
}

std::string in_turn(const std::string& a, const std::string& b) {
    return a.empty() || b.empty() ? a + b : a + " " + b;
}

std::string any_of(const std::vector<std::string>& alternatives) {
    std::string result;
    for (const std::string& one : alternatives) result += (result.empty() ? "" : " | ") + one;
    return alternatives.size() > 1 ? "(" + result + ")" : result;
}

bool all(std::string_view text, char c) {
    return std::ranges::all_of(text, [c](char one) { return one == c; });
}

char next(char c) { return static_cast<char>(c + 1); }
char before(char c) { return static_cast<char>(c - 1); }

/// Digits of one length, from `low` on and up to `high`.
std::string same_length(std::string_view low, std::string_view high);

std::string from(std::string_view low) {
    if (low.empty()) return {};
    if (all(low, '0')) return digits(low.size(), low.size());
    return same_length(low, std::string(low.size(), '9'));
}

std::string up_to(std::string_view high) {
    if (high.empty()) return {};
    if (all(high, '9')) return digits(high.size(), high.size());
    return same_length(std::string(high.size(), '0'), high);
}

std::string same_length(std::string_view low, std::string_view high) {
    if (low.empty()) return {};
    const char l = low[0];
    const char h = high[0];
    const std::string_view low_rest = low.substr(1);
    const std::string_view high_rest = high.substr(1);
    if (l == h) return in_turn(digit(l, l), same_length(low_rest, high_rest));
    std::vector<std::string> alternatives;
    const bool low_free = all(low_rest, '0');
    const bool high_free = all(high_rest, '9');
    if (!low_free) alternatives.push_back(in_turn(digit(l, l), from(low_rest)));
    const std::string between = digit(low_free ? l : next(l), high_free ? h : before(h));
    if (!between.empty()) {
        alternatives.push_back(in_turn(between, digits(low_rest.size(), low_rest.size())));
    }
    if (!high_free) alternatives.push_back(in_turn(digit(h, h), up_to(high_rest)));
    return any_of(alternatives);
}

bool less(std::string_view a, std::string_view b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
}

/// Whole numbers from `low` to `high`, without zeros in front.
std::string whole_range(const std::string& low, const std::string& high) {
    std::vector<std::string> alternatives;
    size_t free_from = 0;  // lengths of which all numbers are in the range
    size_t free_to = 0;
    for (size_t length = low.size(); length <= high.size(); ++length) {
        const std::string first = '1' + std::string(length - 1, '0');
        const std::string last(length, '9');
        const std::string& l = length == low.size() ? low : first;
        const std::string& h = length == high.size() ? high : last;
        if (l == first && h == last) {
            if (free_from == 0) free_from = length;
            free_to = length;
        } else {
            alternatives.push_back(same_length(l, h));
        }
    }
    if (free_from > 0) {
        alternatives.push_back(in_turn("[1-9]", digits(free_from - 1, free_to - 1)));
    }
    return any_of(alternatives);
}

std::string plus_one(std::string value) {
    for (size_t i = value.size(); i-- > 0;) {
        if (value[i] != '9') {
            value[i] = next(value[i]);
            return value;
        }
        value[i] = '0';
    }
    return '1' + value;
}

std::string minus_one(std::string value) {  // of one that is not 0
    for (size_t i = value.size(); i-- > 0;) {
        if (value[i] != '0') {
            value[i] = before(value[i]);
            break;
        }
        value[i] = '9';
    }
    value.erase(0, std::min(value.find_first_not_of('0'), value.size() - 1));
    return value;
}

/// The digits after a point that lie on the right side of a bound.
struct Digits {
    bool none = false;  ///< no digits at all are right
    std::vector<std::string> some = {};
    size_t room = 0;  ///< digits there may be
};

/// " rest" where the rest may also be missing.
std::string then(const Digits& rest) {
    if (rest.some.empty()) return {};
    return " " + any_of(rest.some) + (rest.none ? "?" : "");
}

void add_digit(Digits& result, const std::string& first, const Digits& rest) {
    if (first.empty() || (!rest.none && rest.some.empty())) return;
    std::string tail = then(rest);
    // One alternative needs no parentheses, but then ? would hold only its last part.
    if (rest.none && rest.some.size() == 1) tail = " (" + rest.some.front() + ")?";
    result.some.push_back(first + tail);
}

Digits any_digits(size_t room) {
    Digits result{.none = true, .room = room};
    if (room > 0) result.some.push_back(digits(1, room));
    return result;
}

/// Of fractions between two bounds; nothing for one stands for no bound on that side.
Digits fractions(const std::optional<std::string>& low, bool low_exclusive,
                 const std::optional<std::string>& high, bool high_exclusive, size_t room) {
    if (!low && !high) return any_digits(room);
    Digits result{.room = room};
    const bool low_zero = !low || low->empty();
    result.none =
        !(low && (!low->empty() || low_exclusive)) && !(high && high->empty() && high_exclusive);
    if (low && low->empty() && !low_exclusive && !high) return any_digits(room);
    if (room == 0 ||
        (high && high->empty() && (high_exclusive || (low && (low_exclusive || !low_zero))))) {
        return result;
    }
    if (high && high->empty()) {  // only zeros
        result.some.push_back(room == 1 ? "\"0\"" : fmt::format("\"0\"{{1,{}}}", room));
        return result;
    }
    if (low && low->empty() && low_exclusive && !high) {  // anything but zeros
        result.some.push_back(fmt::format("\"0\"{{0,{}}} [1-9] [0-9]{{0,{}}}", room - 1, room - 1));
        return result;
    }
    const char l = low_zero ? '0' : low->front();
    const char h = !high ? '9' : high->front();
    const auto rest_of = [](const std::optional<std::string>& bound) -> std::optional<std::string> {
        if (!bound) return {};
        return bound->empty() ? std::string() : bound->substr(1);
    };
    const auto low_rest = rest_of(low);
    const auto high_rest = rest_of(high);
    if (low && high && l == h) {
        add_digit(result, digit(l, l),
                  fractions(low_rest, low_exclusive, high_rest, high_exclusive, room - 1));
        return result;
    }
    if (low)
        add_digit(result, digit(l, l), fractions(low_rest, low_exclusive, {}, false, room - 1));
    add_digit(result, digit(low ? next(l) : '0', high ? before(h) : '9'), any_digits(room - 1));
    if (high)
        add_digit(result, digit(h, h), fractions({}, false, high_rest, high_exclusive, room - 1));
    return result;
}

void add_fraction(std::vector<std::string>& alternatives, const std::string& whole,
                  const Digits& fraction) {
    if (fraction.some.empty()) {
        if (fraction.none) alternatives.push_back(whole);
        return;
    }
    const std::string point = "\".\" " + any_of(fraction.some);
    alternatives.push_back(whole + (fraction.none ? " (" + point + ")?" : " " + point));
}

/// How many digits may follow `whole`. A number just beside a bound that is excluded must not
/// become the bound when it is read as a double, which 15 digits rule out.
size_t room_after(const std::string& whole, const NumberBound& low, const NumberBound& high) {
    if (low.exclusive || high.exclusive) return exact_digits - std::min(exact_digits, whole.size());
    return std::max({usual_digits, low.value.fraction.size() + 2, high.value.fraction.size() + 2});
}

/// Numbers that are not negative between two bounds, without a sign.
std::vector<std::string> magnitudes(const NumberBound& low, const NumberBound& high) {
    std::vector<std::string> result;
    const std::string& l = low.value.whole;
    const std::string& h = high.value.whole;
    const auto room = [&](const std::string& whole) { return room_after(whole, low, high); };
    if (l == h) {
        add_fraction(result, fmt::format("\"{}\"", l),
                     fractions(low.value.fraction, low.exclusive, high.value.fraction,
                               high.exclusive, room(l)));
        return result;
    }
    add_fraction(result, fmt::format("\"{}\"", l),
                 fractions(low.value.fraction, low.exclusive, {}, false, room(l)));
    const std::string first = plus_one(l);
    const std::string last = minus_one(h);
    if (!less(last, first)) {
        add_fraction(result, whole_range(first, last), any_digits(room(last)));
    }
    add_fraction(result, fmt::format("\"{}\"", h),
                 fractions({}, false, high.value.fraction, high.exclusive, room(h)));
    return result;
}

Decimal negated(Decimal value) {
    const bool zero = value.whole == "0" && value.fraction.empty();
    value.negative = !zero && !value.negative;
    return value;
}

/// The bound itself, or one far enough away.
NumberBound bound_or_far(const std::optional<NumberBound>& bound,
                         const std::optional<NumberBound>& other, bool negative) {
    if (bound) return *bound;
    const size_t length = std::max(usual_digits, other ? other->value.whole.size() + 1 : 0);
    return {{negative, std::string(length, '9'), {}}, false};
}

/// Up or down to a whole number that is in the range.
Decimal to_whole(const NumberBound& bound, bool up) {
    Decimal value{bound.value.negative, bound.value.whole, {}};
    const bool on_it = bound.value.fraction.empty();
    if (on_it && !bound.exclusive) return value;
    // Cutting the fraction off goes towards zero.
    const bool towards = bound.value.negative == up;
    if (!on_it && towards) {
        value.negative = value.negative && value.whole != "0";
        return value;
    }
    if (value.whole == "0") return {!up, "1", {}};
    value.whole = towards ? minus_one(value.whole) : plus_one(value.whole);
    value.negative = value.negative && value.whole != "0";
    return value;
}

std::string joined(const std::vector<std::string>& alternatives) {
    std::string result;
    for (const std::string& one : alternatives) result += (result.empty() ? "" : " | ") + one;
    return result;
}

}  // namespace

Decimal decimal_of(const nlohmann::ordered_json& number) {
    if (!number.is_number()) fail("is not a number");
    if (number.is_number_float() && !std::isfinite(number.get<double>())) fail("is not finite");
    std::string text = number.dump();
    Decimal result;
    result.negative = text.front() == '-';
    if (result.negative) text.erase(0, 1);
    int exponent = 0;
    if (const size_t e = text.find('e'); e != std::string::npos) {
        exponent = std::stoi(text.substr(e + 1));
        text.resize(e);
    }
    const size_t point = std::min(text.find('.'), text.size());
    std::string all_digits = text.substr(0, point);
    if (point < text.size()) all_digits += text.substr(point + 1);
    const int place = static_cast<int>(point) + exponent;  // of the point in all_digits
    if (place < 0) all_digits.insert(0, static_cast<size_t>(-place), '0');
    const auto n_whole = static_cast<size_t>(std::max(place, 0));
    if (all_digits.size() < n_whole) all_digits.append(n_whole - all_digits.size(), '0');
    std::string whole = all_digits.substr(0, n_whole);
    whole.erase(0, whole.find_first_not_of('0'));
    result.whole = whole.empty() ? "0" : whole;
    result.fraction = all_digits.substr(n_whole);
    result.fraction.erase(result.fraction.find_last_not_of('0') + 1);
    if (result.whole == "0" && result.fraction.empty()) result.negative = false;
    return result;
}

int compare(const Decimal& a, const Decimal& b) {
    if (a.negative != b.negative) return a.negative ? -1 : 1;
    int order = 0;
    if (a.whole != b.whole) {
        order = less(a.whole, b.whole) ? -1 : 1;
    } else if (a.fraction != b.fraction) {
        order = a.fraction < b.fraction ? -1 : 1;
    }
    return a.negative ? -order : order;
}

void NumberRange::at_least(const NumberBound& bound) {
    const int order = least ? compare(bound.value, least->value) : 1;
    if (order > 0 || (order == 0 && bound.exclusive)) least = bound;
}

void NumberRange::at_most(const NumberBound& bound) {
    const int order = most ? compare(bound.value, most->value) : -1;
    if (order < 0 || (order == 0 && bound.exclusive)) most = bound;
}

bool NumberRange::contains(const Decimal& value) const {
    const int low = least ? compare(value, least->value) : 1;
    const int high = most ? compare(value, most->value) : -1;
    return (low > 0 || (low == 0 && !least->exclusive)) &&
           (high < 0 || (high == 0 && !most->exclusive));
}

bool NumberRange::apart_from(const NumberRange& other) const {
    const auto below = [](const NumberRange& a, const NumberRange& b) {
        if (!a.most || !b.least) return false;
        const int order = compare(a.most->value, b.least->value);
        return order < 0 || (order == 0 && (a.most->exclusive || b.least->exclusive));
    };
    return below(*this, other) || below(other, *this);
}

std::string integer_body(const NumberRange& range) {
    const Decimal low = to_whole(bound_or_far(range.least, range.most, true), true);
    const Decimal high = to_whole(bound_or_far(range.most, range.least, false), false);
    if (compare(low, high) > 0) return {};
    std::vector<std::string> alternatives;
    if (low.negative) {
        const std::string nearest = high.negative ? high.whole : "1";
        alternatives.push_back("\"-\" " + whole_range(nearest, low.whole));
    }
    if (!high.negative) {
        const bool zero = low.negative || low.whole == "0";
        if (zero) alternatives.emplace_back("\"0\"");
        const std::string first = zero ? "1" : low.whole;
        if (!less(high.whole, first)) alternatives.push_back(whole_range(first, high.whole));
    }
    return joined(alternatives);
}

std::string number_body(const NumberRange& range) {
    const NumberBound low = bound_or_far(range.least, range.most, true);
    const NumberBound high = bound_or_far(range.most, range.least, false);
    const int order = compare(low.value, high.value);
    if (order > 0 || (order == 0 && (low.exclusive || high.exclusive))) return {};
    const NumberBound above_zero{{}, true};
    std::vector<std::string> alternatives;
    if (low.value.negative) {
        const NumberBound nearest =
            high.value.negative ? NumberBound{negated(high.value), high.exclusive} : above_zero;
        for (const std::string& one : magnitudes(nearest, {negated(low.value), low.exclusive})) {
            alternatives.push_back("\"-\" " + one);
        }
    }
    if (!high.value.negative) {
        const NumberBound nearest = low.value.negative ? NumberBound{{}, false} : low;
        for (std::string& one : magnitudes(nearest, high)) {
            alternatives.push_back(std::move(one));
        }
    }
    return joined(alternatives);
}

}  // namespace pleat
