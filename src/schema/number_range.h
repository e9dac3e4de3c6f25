#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "schema/grammar_text.h"

namespace pleat {

/// A number in decimal digits, so that bounds are exact. Zero is not negative.
struct Decimal {
    bool negative = false;
    std::string whole = "0";    ///< without zeros in front
    std::string fraction = {};  ///< without zeros at the end
    bool operator==(const Decimal&) const = default;
};

/// The digits that a JSON number is written with. Throws Error when it is not a number or not
/// finite.
Decimal decimal_of(const nlohmann::ordered_json& number);
/// Negative, zero or positive as a is less than, equal to or greater than b.
int compare(const Decimal& a, const Decimal& b);

struct NumberBound {
    Decimal value;
    bool exclusive = false;
};

struct NumberRange {
    std::optional<NumberBound> least = {};
    std::optional<NumberBound> most = {};

    void at_least(const NumberBound& bound);  ///< the stricter one stays
    void at_most(const NumberBound& bound);
    bool bounded() const { return least || most; }
    bool contains(const Decimal& value) const;
    /// Whether no number is in both.
    bool apart_from(const NumberRange& other) const;
};

/// The body of a rule for the integers in a range, none of more than 16 digits unless the bounds
/// have more. Empty when there is none.
std::string integer_body(const NumberRange& range);
/// The same for numbers without an exponent, of up to 16 digits after the point (as many as the
/// bounds have and two more), with an excluded bound of 15 digits in all.
std::string number_body(const NumberRange& range);

}  // namespace pleat
