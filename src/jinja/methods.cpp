#include "jinja/methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "jinja/arguments.h"
#include "jinja/operators.h"
#include "jinja/scope.h"
#include "jinja/texts.h"
#include "jinja/unicode.h"

namespace pleat::jinja {
namespace {

using Given = minja::ArgumentsValue;
using TextMethod = std::function<Value(const std::string&, const Given&)>;

Value text_list(const std::vector<std::string>& parts) {
    Value result = Value::array();
    for (const std::string& part : parts) result.push_back(text(part));
    return result;
}

Value strip(const char* name, const std::string& self, const Given& given, bool left, bool right) {
    const Arguments a(name, given, {"chars"});
    if (!a.has(0) || is_none(a[0])) return text(stripped(self, left, right));
    return text(stripped(self, a.string(0), left, right));
}

Value split_method(const std::string& self, const Given& given, bool from_right) {
    const Arguments a("split", given, {"sep", "maxsplit"});
    const int64_t limit = a.integer(1, -1);
    if (!a.has(0) || is_none(a[0])) return text_list(words(self, limit));
    const std::string separator = a.string(0);
    if (separator.empty()) throw Abort{"split by an empty separator"};
    return text_list(from_right ? split_right(self, separator, limit)
                                : split(self, separator, limit));
}

/// One prefix or any of a tuple.
bool has_affix(const char* name, const Given& given,
               const std::function<bool(const std::string&)>& fits) {
    const Arguments a(name, given, {"affix"});
    if (!a.need(0).is_array()) return fits(a.string(0));
    const auto all = elements(a[0]);
    return std::ranges::any_of(all, [&](const Value& v) { return fits(string_of(v)); });
}

/// In characters; -1 when it is not there.
Value find(const std::string& self, const Given& given, bool last) {
    const Arguments a("find", given, {"sub"});
    const size_t at = last ? self.rfind(a.string(0)) : self.find(a.string(0));
    if (at == std::string::npos) return Value(int64_t{-1});
    return Value(static_cast<int64_t>(n_characters(std::string_view(self).substr(0, at))));
}

Value count(const std::string& self, const Given& given) {
    const Arguments a("count", given, {"sub"});
    const std::string part = a.string(0);
    if (part.empty()) return Value(static_cast<int64_t>(n_characters(self) + 1));
    return Value(static_cast<int64_t>(split(self, part, -1).size() - 1));
}

Value partition(const std::string& self, const Given& given, bool last) {
    const Arguments a("partition", given, {"sep"});
    const std::string separator = a.string(0);
    if (separator.empty()) throw Abort{"partition by an empty separator"};
    const size_t at = last ? self.rfind(separator) : self.find(separator);
    if (at == std::string::npos) {
        return last ? text_list({"", "", self}) : text_list({self, "", ""});
    }
    return text_list({self.substr(0, at), separator, self.substr(at + separator.size())});
}

bool all_characters(const std::string& self, bool (*is)(char32_t)) {
    const std::u32string all = characters(self);
    return !all.empty() && std::ranges::all_of(all, is);
}

bool is_digit(char32_t c) { return c >= '0' && c <= '9'; }
bool is_letter(char32_t c) { return to_upper(c) != to_lower(c) || c > 0x2FF; }

/// Whether it has letters with a case, all of this one.
bool has_case(const std::string& self, bool upper) {
    return (upper ? to_upper(self) : to_lower(self)) == self &&
           (upper ? to_lower(self) : to_upper(self)) != self;
}

Value justified(const std::string& self, const Given& given, bool left) {
    const Arguments a("ljust", given, {"width", "fillchar"});
    const size_t width = width_of(integer_of(a.need(0)));
    const std::string by = a.string(1, " ");
    if (n_characters(by) != 1) throw Abort{"the fill character must be one"};
    std::string fill;
    for (size_t n = n_characters(self); n < width; ++n) fill += by;
    return text(left ? self + fill : fill + self);
}

/// {} {0} {name} of str.format, without format specifications.
Value format(const std::string& self, const Given& given) {
    std::string result;
    size_t next = 0;
    for (size_t i = 0; i < self.size(); ++i) {
        check_size(result);
        const char c = self[i];
        if ((c == '{' || c == '}') && i + 1 < self.size() && self[i + 1] == c) {
            result += c;
            ++i;
        } else if (c == '{') {
            const size_t end = self.find('}', i);
            if (end == std::string::npos) throw Abort{"single { in a format string"};
            std::string field = self.substr(i + 1, end - i - 1);
            if (field.find_first_of("!:.[") != std::string::npos) {
                throw Abort{fmt::format("unsupported format field {}", field)};
            }
            const bool number =
                std::ranges::all_of(field, [](char d) { return d >= '0' && d <= '9'; });
            if (number) {
                const size_t index = field.empty() ? next++ : std::stoul(field.substr(0, 6));
                if (index >= given.args.size()) throw Abort{"not enough arguments for format"};
                result += str(given.args[index]);
            } else {
                const auto named =
                    std::ranges::find(given.kwargs, field, [](const auto& p) { return p.first; });
                if (named == given.kwargs.end())
                    throw Abort{fmt::format("format has no {}", field)};
                result += str(named->second);
            }
            i = end;
        } else {
            if (c == '}') throw Abort{"single } in a format string"};
            result += c;
        }
    }
    return text(std::move(result));
}

Value join(const std::string& self, const Given& given) {
    const Arguments a("join", given, {"iterable"});
    std::string result;
    bool first = true;
    for (const Value& item : elements(a.need(0))) {
        if (!first) result += self;
        first = false;
        result += string_of(item);
        check_size(result);
    }
    return text(std::move(result));
}

std::string swapped(const std::string& self) {
    std::u32string all = characters(self);
    for (char32_t& c : all) c = to_upper(c) == c ? to_lower(c) : to_upper(c);
    return utf8(all);
}

Value zero_filled(const std::string& self, const Given& given) {
    const Arguments a("zfill", given, {"width"});
    const size_t width = width_of(integer_of(a.need(0)));
    const size_t n = n_characters(self);
    const bool sign = !self.empty() && (self[0] == '-' || self[0] == '+');
    std::string result = self;
    if (n < width) result.insert(sign ? 1 : 0, width - n, '0');
    return text(std::move(result));
}

/// A method without arguments.
template <typename Function>
TextMethod simple(const char* name, Function function) {
    return [=](const std::string& self, const Given& given) -> Value {
        const Arguments none_expected(name, given, {});
        return Value(function(self));
    };
}

const std::map<std::string, TextMethod, std::less<>>& text_methods() {
    using S = const std::string&;
    using G = const Given&;
    static const std::map<std::string, TextMethod, std::less<>> methods{
        {"capitalize", simple("capitalize", [](S s) { return capitalized(s); })},
        {"casefold", simple("casefold", [](S s) { return to_lower(s); })},
        {"count", count},
        {"endswith",
         [](S s, G g) {
             return Value(has_affix("endswith", g, [&](S end) { return s.ends_with(end); }));
         }},
        {"find", [](S s, G g) { return find(s, g, false); }},
        {"format", format},
        {"index",
         [](S s, G g) {
             Value at = find(s, g, false);
             if (integer_of(at) < 0) throw Abort{"substring not found"};
             return at;
         }},
        {"isalnum", simple("isalnum",
                           [](S s) {
                               return all_characters(
                                   s, [](char32_t c) { return is_digit(c) || is_letter(c); });
                           })},
        {"isalpha", simple("isalpha", [](S s) { return all_characters(s, is_letter); })},
        {"isdecimal", simple("isdecimal", [](S s) { return all_characters(s, is_digit); })},
        {"isdigit", simple("isdigit", [](S s) { return all_characters(s, is_digit); })},
        {"isnumeric", simple("isnumeric", [](S s) { return all_characters(s, is_digit); })},
        {"islower", simple("islower", [](S s) { return has_case(s, false); })},
        {"isupper", simple("isupper", [](S s) { return has_case(s, true); })},
        {"isspace", simple("isspace", [](S s) { return all_characters(s, is_space); })},
        {"join", join},
        {"ljust", [](S s, G g) { return justified(s, g, true); }},
        {"rjust", [](S s, G g) { return justified(s, g, false); }},
        {"lower", simple("lower", [](S s) { return to_lower(s); })},
        {"lstrip", [](S s, G g) { return strip("lstrip", s, g, true, false); }},
        {"rstrip", [](S s, G g) { return strip("rstrip", s, g, false, true); }},
        {"strip", [](S s, G g) { return strip("strip", s, g, true, true); }},
        {"partition", [](S s, G g) { return partition(s, g, false); }},
        {"rpartition", [](S s, G g) { return partition(s, g, true); }},
        {"removeprefix",
         [](S s, G g) {
             const std::string prefix = Arguments("removeprefix", g, {"prefix"}).string(0);
             return text(s.starts_with(prefix) ? s.substr(prefix.size()) : s);
         }},
        {"removesuffix",
         [](S s, G g) {
             const std::string suffix = Arguments("removesuffix", g, {"suffix"}).string(0);
             return text(s.ends_with(suffix) ? s.substr(0, s.size() - suffix.size()) : s);
         }},
        {"replace",
         [](S s, G g) {
             const Arguments a("replace", g, {"old", "new", "count"});
             return text(replaced(s, a.string(0), a.string(1), a.integer(2, -1)));
         }},
        {"rfind", [](S s, G g) { return find(s, g, true); }},
        {"split", [](S s, G g) { return split_method(s, g, false); }},
        {"rsplit", [](S s, G g) { return split_method(s, g, true); }},
        {"splitlines",
         [](S s, G g) {
             return text_list(lines(s, Arguments("splitlines", g, {"keepends"}).boolean(0, false)));
         }},
        {"startswith",
         [](S s, G g) {
             return Value(
                 has_affix("startswith", g, [&](S begin) { return s.starts_with(begin); }));
         }},
        {"swapcase", simple("swapcase", swapped)},
        {"title", simple("title", [](S s) { return titled(s); })},
        {"upper", simple("upper", [](S s) { return to_upper(s); })},
        {"zfill", zero_filled},
    };
    return methods;
}

Value mapping_method(Value object, const std::string& name, const Given& given, Budget& budget) {
    if (name == "get") {
        const Arguments a("get", given, {"key", "default"});
        if (a.need(0).is_hashable() && object.contains(a[0])) return object.at(a[0]);
        return a.has(1) ? a[1] : none();
    }
    if (name == "items" || name == "keys" || name == "values") {
        const Arguments none_expected(name, given, {});
        std::vector<Value> result = object.keys();
        for (Value& key : result) {
            if (name == "items") key = Value::array({key, object.at(key)});
            if (name == "values") key = Value(object.at(key));
        }
        budget.bytes(weight(result));
        return list(std::move(result));
    }
    if (name == "copy") {
        Value copy = Value::object();
        for (const Value& key : object.keys()) copy.set(key, object.at(key));
        return copy;
    }
    throw Abort{fmt::format("a dict has no method {}", name)};
}

Value list_method(Value object, const std::string& name, const Given& given, Rendering& rendering) {
    if (name == "append") {
        const Arguments a("append", given, {"item"});
        rendering.budget.nested();
        if (!a.need(0).is_primitive()) rendering.grown_lists.push_back(object);
        object.push_back(a.need(0));
        return none();
    }
    if (name == "pop") {
        const Arguments a("pop", given, {"index"});
        const auto size = static_cast<int64_t>(object.size());
        const int64_t index = a.integer(0, -1) + (a.integer(0, -1) < 0 ? size : 0);
        if (index < 0 || index >= size) throw Abort{"pop index out of range"};
        Value result = object.at(static_cast<size_t>(index));
        object.erase(static_cast<size_t>(index));
        return result;
    }
    if (name == "count" || name == "index") {
        const Arguments a(name, given, {"value"});
        int64_t n = 0;
        Walk walk;
        for (size_t i = 0; i < object.size(); ++i) {
            if (!equal(object.at(i), a.need(0), walk)) continue;
            if (name == "index") return Value(static_cast<int64_t>(i));
            ++n;
        }
        if (name == "index") throw Abort{"value is not in the list"};
        return Value(n);
    }
    throw Abort{fmt::format("a list has no method {}", name)};
}

}  // namespace

Value call_method(const Value& object, const std::string& name, minja::ArgumentsValue& arguments,
                  const std::shared_ptr<minja::Context>& scope) {
    Budget& budget = budget_of(scope);
    if (object.is_string()) {
        const auto method = text_methods().find(name);
        if (method == text_methods().end())
            throw Abort{fmt::format("a str has no method {}", name)};
        Value result = method->second(object.get<std::string>(), arguments);
        if (result.is_string() || result.is_array()) budget.bytes(result.size());
        return result;
    }
    if (object.is_array()) return list_method(object, name, arguments, rendering_of(scope));
    if (object.is_object()) {
        if (object.contains(name)) {
            const Value& function = object.at(Value(name));
            if (function.is_callable()) return function.call(scope, arguments);
        }
        return mapping_method(object, name, arguments, budget);
    }
    throw Abort{fmt::format("{} of {}", name,
                            is_undefined(object) ? "an undefined value" : type_name(object))};
}

}  // namespace pleat::jinja
