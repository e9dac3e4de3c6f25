#include <cmath>
#include <map>

#include "jinja/arguments.h"
#include "jinja/filters.h"
#include "jinja/unicode.h"

namespace pleat::jinja {
namespace {

using Given = minja::ArgumentsValue;

const Value& only(const Given& given) {
    if (given.args.size() != 1 || !given.kwargs.empty()) throw Abort{"this test has no arguments"};
    return given.args[0];
}

const Value& other(const Given& given) {
    if (given.args.size() != 2 || !given.kwargs.empty()) throw Abort{"this test has one argument"};
    return given.args[1];
}

bool has_case(const Value& v, bool upper) {
    const std::string text = str(v);
    return (upper ? to_upper(text) : to_lower(text)) == text &&
           (upper ? to_lower(text) : to_upper(text)) != text;
}

int64_t remainder(const Value& v, const Value& by) {
    const int64_t divisor = integer_of(by);
    if (divisor == 0) throw Abort{"division by zero"};
    return divisor == -1 ? 0 : integer_of(v) % divisor;
}

bool same(const Value& a, const Value& b) {
    if (type_name(a) != type_name(b)) return false;
    return equal(a, b);
}

using Table = std::map<std::string, Predicate, std::less<>>;

const Table& table() {
    static const Table tests{
        {"boolean", [](Given& g) { return only(g).is_boolean(); }},
        {"callable", [](Given& g) { return only(g).is_callable(); }},
        {"defined", [](Given& g) { return !is_undefined(only(g)); }},
        {"undefined", [](Given& g) { return is_undefined(only(g)); }},
        {"divisibleby", [](Given& g) { return remainder(g.args[0], other(g)) == 0; }},
        {"even", [](Given& g) { return remainder(only(g), Value(int64_t{2})) == 0; }},
        {"odd", [](Given& g) { return remainder(only(g), Value(int64_t{2})) != 0; }},
        {"false", [](Given& g) { return only(g).is_boolean() && !truth(g.args[0]); }},
        {"true", [](Given& g) { return only(g).is_boolean() && truth(g.args[0]); }},
        {"float", [](Given& g) { return only(g).is_number_float(); }},
        {"integer", [](Given& g) { return is_integer(only(g)); }},
        {"number", [](Given& g) { return only(g).is_number() || g.args[0].is_boolean(); }},
        {"in", [](Given& g) { return contains(other(g), g.args[0]); }},
        // What is undefined can be iterated over and has a length.
        {"iterable",
         [](Given& g) {
             const Value& v = only(g);
             return v.is_string() || v.is_array() || is_mapping(v) || is_undefined(v);
         }},
        {"sequence",
         [](Given& g) {
             const Value& v = only(g);
             return v.is_string() || v.is_array() || is_mapping(v) || is_undefined(v);
         }},
        {"mapping", [](Given& g) { return is_mapping(only(g)); }},
        {"none", [](Given& g) { return is_none(only(g)); }},
        {"sameas", [](Given& g) { return same(g.args[0], other(g)); }},
        {"string", [](Given& g) { return only(g).is_string(); }},
        {"lower", [](Given& g) { return has_case(only(g), false); }},
        {"upper", [](Given& g) { return has_case(only(g), true); }},
        {"filter", [](Given& g) { return find_filter(string_of(only(g))) != nullptr; }},
        {"test", [](Given& g) { return find_test(string_of(only(g))) != nullptr; }},
        {"==", [](Given& g) { return equal(g.args[0], other(g)); }},
        {"!=", [](Given& g) { return !equal(g.args[0], other(g)); }},
        {"<", [](Given& g) { return less(g.args[0], other(g)); }},
        {">", [](Given& g) { return less(other(g), g.args[0]); }},
        {"<=", [](Given& g) { return !less(other(g), g.args[0]); }},
        {">=", [](Given& g) { return !less(g.args[0], other(g)); }},
    };
    return tests;
}

}  // namespace

Predicate find_test(std::string_view name) {
    static const std::map<std::string_view, std::string_view> other_names{
        {"eq", "=="}, {"equalto", "=="},    {"ne", "!="}, {"lt", "<"}, {"lessthan", "<"},
        {"gt", ">"},  {"greaterthan", ">"}, {"le", "<="}, {"ge", ">="}};
    const auto alias = other_names.find(name);
    const auto found = table().find(alias == other_names.end() ? name : alias->second);
    return found == table().end() ? nullptr : found->second;
}

}  // namespace pleat::jinja
