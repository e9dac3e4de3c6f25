#include "jinja/operators.h"

#include <fmt/format.h>

#include <cmath>

#include "jinja/texts.h"
#include "jinja/unicode.h"

namespace pleat::jinja {
namespace {

constexpr size_t max_repeated = size_t{16} << 20;

[[noreturn]] void unsupported(std::string_view op, const Value& a, const Value& b) {
    throw Abort{
        fmt::format("unsupported operands for {}: {} and {}", op, type_name(a), type_name(b))};
}

bool numeric(const Value& v) { return v.is_number() || v.is_boolean(); }
bool whole(const Value& v) { return v.is_number_integer() || v.is_boolean(); }
double real(const Value& v) {
    return v.is_boolean() ? static_cast<double>(v.get<bool>()) : v.get<double>();
}

[[noreturn]] void too_large() { throw Abort{"an integer grows beyond 64 bits"}; }

int64_t floor_div(int64_t a, int64_t b) {
    if (b == 0) throw Abort{"division by zero"};
    if (b == -1) {
        int64_t result = 0;
        if (__builtin_sub_overflow(int64_t{0}, a, &result)) too_large();
        return result;
    }
    const int64_t quotient = a / b;
    return quotient * b != a && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

Value power(int64_t base, int64_t exponent) {
    if (exponent < 0) {
        if (base == 0) throw Abort{"division by zero"};
        return Value(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
    }
    if (exponent == 0 || base == 1) return Value(int64_t{1});
    if (base == 0 || base == -1) return Value(exponent % 2 == 0 ? base * base : base);
    int64_t result = 1;
    for (; exponent > 0; --exponent) {
        if (__builtin_mul_overflow(result, base, &result)) too_large();
    }
    return Value(result);
}

Value whole_arithmetic(std::string_view op, int64_t a, int64_t b) {
    int64_t result = 0;
    bool overflow = false;
    if (op == "+") {
        overflow = __builtin_add_overflow(a, b, &result);
    } else if (op == "-") {
        overflow = __builtin_sub_overflow(a, b, &result);
    } else if (op == "*") {
        overflow = __builtin_mul_overflow(a, b, &result);
    } else if (op == "//") {
        result = floor_div(a, b);
    } else if (op == "%") {
        if (b == 0) throw Abort{"division by zero"};
        result = b == -1 ? 0 : a % b;
        if (result != 0 && (result < 0) != (b < 0)) result += b;
    } else if (op == "**") {
        return power(a, b);
    } else {
        if (b == 0) throw Abort{"division by zero"};
        return Value(static_cast<double>(a) / static_cast<double>(b));
    }
    if (overflow) too_large();
    return Value(result);
}

Value real_arithmetic(std::string_view op, double a, double b) {
    if (op == "+") return Value(a + b);
    if (op == "-") return Value(a - b);
    if (op == "*") return Value(a * b);
    if (op == "**") return Value(std::pow(a, b));
    if (b == 0.0) throw Abort{"division by zero"};
    if (op == "/") return Value(a / b);
    if (op == "//") return Value(std::floor(a / b));
    const double rest = std::fmod(a, b);
    return Value(rest != 0.0 && (rest < 0) != (b < 0) ? rest + b : rest);
}

Value repeated(const Value& v, int64_t n, Budget& budget) {
    const size_t times = n > 0 ? static_cast<size_t>(n) : 0;
    if (v.size() > 0 && times > max_repeated / v.size()) throw Abort{"repeats too much"};
    budget.bytes(times * (v.is_array() ? weight(elements(v)) : v.size()));
    if (v.is_string()) {
        const std::string once = v.get<std::string>();
        std::string all;
        for (size_t i = 0; i < times; ++i) all += once;
        return text(std::move(all));
    }
    Value all = Value::array();
    for (size_t i = 0; i < times; ++i) {
        for (size_t k = 0; k < v.size(); ++k) all.push_back(v.at(k));
    }
    return all;
}

Value plus(const Value& a, const Value& b, Budget& budget) {
    if (a.is_string() && b.is_string()) {
        std::string sum = a.get<std::string>() + b.get<std::string>();
        budget.bytes(sum.size());
        return text(std::move(sum));
    }
    if (!a.is_array() || !b.is_array()) unsupported("+", a, b);
    std::vector<Value> all = elements(a);
    for (Value& item : elements(b)) all.push_back(std::move(item));
    budget.bytes(weight(all));
    return list(std::move(all));
}

}  // namespace

Value arithmetic(std::string_view op, const Value& a, const Value& b, Budget& budget) {
    if (op == "~") {
        std::string sum = str(a) + str(b);
        budget.bytes(sum.size());
        return text(std::move(sum));
    }
    if (whole(a) && whole(b)) return whole_arithmetic(op, integer_of(a), integer_of(b));
    if (numeric(a) && numeric(b)) return real_arithmetic(op, real(a), real(b));
    if (op == "+") return plus(a, b, budget);
    if (op == "*" && (a.is_string() || a.is_array()) && whole(b)) {
        return repeated(a, integer_of(b), budget);
    }
    if (op == "*" && (b.is_string() || b.is_array()) && whole(a)) {
        return repeated(b, integer_of(a), budget);
    }
    if (op == "%" && a.is_string()) {
        std::string result = formatted(a.get<std::string>(), b);
        budget.bytes(result.size());
        return text(std::move(result));
    }
    unsupported(op, a, b);
}

bool comparison(std::string_view op, const Value& a, const Value& b) {
    if (op == "==") return equal(a, b);
    if (op == "!=") return !equal(a, b);
    if (op == "in") return contains(b, a);
    if (op == "not in") return !contains(b, a);
    if (op == "<") return less(a, b);
    if (op == ">") return less(b, a);
    if (op == "<=") return less(a, b) || equal(a, b);
    return less(b, a) || equal(a, b);
}

Value negative(const Value& v) {
    if (whole(v)) return whole_arithmetic("-", 0, integer_of(v));
    if (!numeric(v)) throw Abort{fmt::format("{} has no negative", type_name(v))};
    return Value(-real(v));
}

Value attribute(const Value& object, const std::string& name) {
    if (is_undefined(object)) throw Abort{fmt::format("{} of an undefined value", name)};
    if (object.is_object() && object.contains(name)) return object.at(Value(name));
    return {};
}

Value item(const Value& object, const Value& key) {
    if (is_undefined(object)) throw Abort{fmt::format("{} of an undefined value", repr(key))};
    if (object.is_object()) {
        return key.is_hashable() && object.contains(key) ? object.at(key) : Value();
    }
    if (!whole(key)) return {};
    int64_t index = integer_of(key);
    if (object.is_string()) {
        const std::u32string all = characters(object.get<std::string>());
        if (index < 0) index += static_cast<int64_t>(all.size());
        if (index < 0 || static_cast<size_t>(index) >= all.size()) return {};
        return text(utf8({&all[static_cast<size_t>(index)], 1}));
    }
    if (!object.is_array()) return {};
    if (index < 0) index += static_cast<int64_t>(object.size());
    if (index < 0 || static_cast<size_t>(index) >= object.size()) return {};
    return object.at(static_cast<size_t>(index));
}

Value slice(const Value& object, const Value& start, const Value& stop, const Value& step) {
    if (!object.is_string() && !object.is_array()) {
        if (is_undefined(object)) throw Abort{"a slice of an undefined value"};
        return {};
    }
    const auto given = [](const Value& v) { return !is_undefined(v) && !is_none(v); };
    const std::u32string text_of =
        object.is_string() ? characters(object.get<std::string>()) : std::u32string();
    const auto size = static_cast<int64_t>(object.is_string() ? text_of.size() : object.size());
    const int64_t by = given(step) ? integer_of(step) : 1;
    if (by == 0) throw Abort{"slice step cannot be zero"};
    const auto bound = [&](const Value& v, int64_t otherwise) {
        if (!given(v)) return otherwise;
        const int64_t index = integer_of(v) < 0 ? integer_of(v) + size : integer_of(v);
        const int64_t last = by > 0 ? size : size - 1;
        return std::min(std::max<int64_t>(index, by > 0 ? 0 : -1), last);
    };
    const int64_t begin = bound(start, by > 0 ? 0 : size - 1);
    const int64_t end = bound(stop, by > 0 ? size : -1);
    std::u32string chosen;
    Value items = Value::array();
    for (int64_t i = begin; by > 0 ? i < end : i > end;) {
        if (object.is_string()) {
            chosen += text_of[static_cast<size_t>(i)];
        } else {
            items.push_back(object.at(static_cast<size_t>(i)));
        }
        if (__builtin_add_overflow(i, by, &i)) break;
    }
    return object.is_string() ? text(utf8(chosen)) : items;
}

namespace {

/// The digits at `i`, which is moved behind them.
size_t format_width(const std::string& format, size_t& i) {
    size_t width = 0;
    for (; i < format.size() && format[i] >= '0' && format[i] <= '9'; ++i) {
        width = width_of(static_cast<int64_t>(width) * 10 + (format[i] - '0'));
    }
    return width;
}

}  // namespace

std::string formatted(const std::string& format, const Value& values) {
    std::string result;
    size_t used = 0;
    const auto next_value = [&]() -> Value {
        if (!values.is_array()) {
            if (used++ > 0) throw Abort{"not enough arguments for format string"};
            return values;
        }
        if (used >= values.size()) throw Abort{"not enough arguments for format string"};
        return values.at(used++);
    };
    for (size_t i = 0; i < format.size(); ++i) {
        check_size(result);
        if (format[i] != '%') {
            result += format[i];
            continue;
        }
        std::string flags;
        int precision = -1;
        ++i;
        for (; i < format.size() &&
               std::string_view("-+ 0#").find(format[i]) != std::string_view::npos;
             ++i) {
            flags += format[i];
        }
        const size_t width = format_width(format, i);
        if (i < format.size() && format[i] == '.') {
            precision = static_cast<int>(format_width(format, ++i));
        }
        if (i >= format.size()) throw Abort{"incomplete format"};
        const char kind = format[i];
        if (kind == '%') {
            result += '%';
            continue;
        }
        const bool zero = flags.find('0') != std::string::npos;
        const bool left = flags.find('-') != std::string::npos;
        std::string part;
        bool number = true;
        const Value value = next_value();
        switch (kind) {
            case 's':
            case 'r':
                number = false;
                part = kind == 's' ? str(value) : repr(value);
                if (precision >= 0) {
                    part = utf8(characters(part).substr(0, static_cast<size_t>(precision)));
                }
                break;
            case 'd':
            case 'i':
                if (!numeric(value))
                    throw Abort{fmt::format("%d needs a number, not {}", type_name(value))};
                part = whole(value) ? std::to_string(integer_of(value))
                                    : fmt::format("{:.0f}", std::trunc(real(value)));
                break;
            case 'x':
                part = fmt::format("{:x}", integer_of(value));
                break;
            case 'f':
                if (!numeric(value))
                    throw Abort{fmt::format("%f needs a number, not {}", type_name(value))};
                part = fmt::format("{:.{}f}", real(value), precision < 0 ? 6 : precision);
                break;
            default:
                throw Abort{fmt::format("unsupported format character {}", kind)};
        }
        if (number && flags.find('+') != std::string::npos && part[0] != '-') part = "+" + part;
        const size_t n = n_characters(part);
        const size_t missing = width > n ? width - n : 0;
        if (left) {
            part += std::string(missing, ' ');
        } else if (number && zero) {
            part.insert(part[0] == '-' || part[0] == '+' ? 1 : 0, missing, '0');
        } else {
            part.insert(0, missing, ' ');
        }
        result += part;
    }
    if (values.is_array() && used < values.size()) {
        throw Abort{"not all arguments converted during string formatting"};
    }
    if (!values.is_array() && !is_mapping(values) && used == 0) {
        throw Abort{"not all arguments converted during string formatting"};
    }
    return result;
}

}  // namespace pleat::jinja
