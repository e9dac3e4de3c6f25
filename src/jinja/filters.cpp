#include "jinja/filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "jinja/arguments.h"
#include "jinja/list_filters.h"
#include "jinja/operators.h"
#include "jinja/texts.h"
#include "jinja/unicode.h"

namespace pleat::jinja {
namespace {

using Given = minja::ArgumentsValue;

Value tojson(const Scope&, Given& given, Budget& budget) {
    const Arguments a("tojson", given,
                      {"value", "ensure_ascii", "indent", "separators", "sort_keys"});
    JsonStyle style;
    style.ensure_ascii = a.boolean(1, false);
    style.sort_keys = a.boolean(4, false);
    if (a.has(2) && !is_none(a[2])) {
        style.indent = static_cast<int>(width_of(integer_of(a[2])));
        style.item_separator = ",";
    }
    if (a.has(3) && !is_none(a[3])) {
        if (!a[3].is_array() || a[3].size() != 2) throw Abort{"separators must be two texts"};
        style.item_separator = string_of(a[3].at(size_t{0}));
        style.key_separator = string_of(a[3].at(size_t{1}));
    }
    std::string json = to_json(a.need(0), style);
    budget.bytes(json.size());
    return text(std::move(json));
}

Value default_filter(const Scope&, Given& given, Budget&) {
    const Arguments a("default", given, {"value", "default_value", "boolean"});
    const bool missing = a.boolean(2, false) ? !truth(a.need(0)) : is_undefined(a.need(0));
    if (!missing) return a[0];
    return a.has(1) ? a[1] : text("");
}

Value length_filter(const Scope&, Given& given, Budget&) {
    return Value(length(Arguments("length", given, {"value"}).need(0)));
}

Value trim(const Scope&, Given& given, Budget& budget) {
    const Arguments a("trim", given, {"value", "chars"});
    const std::string all = str(a.need(0));
    budget.bytes(all.size());
    if (!a.has(1) || is_none(a[1])) return text(stripped(all, true, true));
    return text(stripped(all, a.string(1), true, true));
}

template <auto function>
Value of_text(const Scope&, Given& given, Budget& budget) {
    std::string result = function(str(Arguments("this filter", given, {"value"}).need(0)));
    budget.bytes(result.size());
    return text(std::move(result));
}

/// Jinja's own rule: words begin behind white space, - and brackets.
std::string title_text(const std::string& all) {
    std::u32string letters = characters(all);
    bool begins = true;
    for (char32_t& c : letters) {
        c = begins ? to_upper(c) : to_lower(c);
        begins = is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
    }
    return utf8(letters);
}

std::string upper_text(const std::string& all) { return to_upper(all); }
std::string lower_text(const std::string& all) { return to_lower(all); }
std::string capital_text(const std::string& all) { return capitalized(all); }
std::string same_text(const std::string& all) { return all; }
std::string html_text(const std::string& all) { return html_escaped(all); }

Value replace(const Scope&, Given& given, Budget& budget) {
    const Arguments a("replace", given, {"value", "old", "new", "count"});
    const int64_t limit = a.has(3) && !is_none(a[3]) ? a.integer(3, -1) : -1;
    std::string result = replaced(str(a.need(0)), str(a.need(1)), str(a.need(2)), limit);
    budget.bytes(result.size());
    return text(std::move(result));
}

Value indent(const Scope&, Given& given, Budget& budget) {
    const Arguments a("indent", given, {"value", "width", "first", "blank"});
    const std::string by = a.has(1) && a[1].is_string()
                               ? string_of(a[1])
                               : std::string(width_of(a.integer(1, 4)), ' ');
    std::string result = indented(str(a.need(0)), by, a.boolean(2, false), a.boolean(3, false));
    budget.bytes(result.size());
    return text(std::move(result));
}

Value format(const Scope&, Given& given, Budget& budget) {
    if (given.args.empty()) throw Abort{"format needs a text"};
    const std::vector<Value> values(given.args.begin() + 1, given.args.end());
    std::string result = formatted(str(given.args[0]), list(values));
    budget.bytes(result.size());
    return text(std::move(result));
}

Value int_filter(const Scope&, Given& given, Budget&) {
    const Arguments a("int", given, {"value", "default", "base"});
    const Value otherwise = a.has(1) ? a[1] : Value(int64_t{0});
    const Value& v = a.need(0);
    if (v.is_number_integer() || v.is_boolean()) return Value(integer_of(v));
    if (v.is_number()) {
        const double number = v.get<double>();
        return std::abs(number) < 9e18 ? Value(static_cast<int64_t>(number)) : otherwise;
    }
    if (!v.is_string()) return otherwise;
    std::string digits = stripped(string_of(v), true, true);
    std::erase(digits, '_');
    const int64_t base = a.integer(2, 10);
    if (base < 2 || base > 36) throw Abort{"int has no such base"};
    char* end = nullptr;
    const int64_t whole = std::strtoll(digits.c_str(), &end, static_cast<int>(base));
    if (!digits.empty() && *end == '\0') return Value(whole);
    const double number = std::strtod(digits.c_str(), &end);
    if (digits.empty() || *end != '\0' || !(std::abs(number) < 9e18)) return otherwise;
    return Value(static_cast<int64_t>(number));
}

Value float_filter(const Scope&, Given& given, Budget&) {
    const Arguments a("float", given, {"value", "default"});
    const Value& v = a.need(0);
    if (v.is_boolean()) return Value(v.get<bool>() ? 1.0 : 0.0);
    if (v.is_number()) return Value(v.get<double>());
    const Value otherwise = a.has(1) ? a[1] : Value(0.0);
    if (!v.is_string()) return otherwise;
    const std::string digits = stripped(string_of(v), true, true);
    char* end = nullptr;
    const double number = std::strtod(digits.c_str(), &end);
    return digits.empty() || *end != '\0' ? otherwise : Value(number);
}

Value absolute(const Scope&, Given& given, Budget&) {
    const Value& v = Arguments("abs", given, {"value"}).need(0);
    return less(v, Value(int64_t{0})) ? negative(v) : v;
}

Value round(const Scope&, Given& given, Budget&) {
    const Arguments a("round", given, {"value", "precision", "method"});
    const Value& v = a.need(0);
    if (!v.is_number() && !v.is_boolean())
        throw Abort{fmt::format("{} cannot be rounded", type_name(v))};
    const double number = v.is_boolean() ? static_cast<double>(integer_of(v)) : v.get<double>();
    const auto digits = static_cast<int>(std::clamp<int64_t>(a.integer(1, 0), -300, 300));
    const double scale = std::pow(10.0, digits);
    const std::string method = a.string(2, "common");
    if (method == "ceil") return Value(std::ceil(number * scale) / scale);
    if (method == "floor") return Value(std::floor(number * scale) / scale);
    if (method != "common") throw Abort{"round knows common, ceil and floor"};
    if (digits < 0) return Value(std::nearbyint(number * scale) / scale);
    // By the decimal digits, ties by the binary value, as Python does.
    return Value(
        std::strtod(fmt::format("{:.{}f}", number, std::min(digits, 300)).c_str(), nullptr));
}

Value attr(const Scope&, Given& given, Budget&) {
    const Arguments a("attr", given, {"value", "name"});
    return attribute(a.need(0), a.string(1));
}

using Table = std::map<std::string, Filter, std::less<>>;

const Table& table() {
    static const Table filters{
        {"abs", absolute},
        {"attr", attr},
        {"capitalize", of_text<capital_text>},
        {"count", length_filter},
        {"d", default_filter},
        {"default", default_filter},
        {"e", of_text<html_text>},
        {"escape", of_text<html_text>},
        {"float", float_filter},
        {"forceescape", of_text<html_text>},
        {"format", format},
        {"indent", indent},
        {"int", int_filter},
        {"length", length_filter},
        {"lower", of_text<lower_text>},
        {"replace", replace},
        {"round", round},
        {"safe", of_text<same_text>},
        {"string", of_text<same_text>},
        {"title", of_text<title_text>},
        {"tojson", tojson},
        {"trim", trim},
        {"upper", of_text<upper_text>},
    };
    return filters;
}

}  // namespace

Filter find_filter(std::string_view name) {
    const auto found = table().find(name);
    return found == table().end() ? find_list_filter(name) : found->second;
}

}  // namespace pleat::jinja
