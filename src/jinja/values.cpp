#include "jinja/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "jinja/unicode.h"

namespace pleat::jinja {

using Json = nlohmann::ordered_json;

void Budget::step(size_t n) {
    steps_ += static_cast<int64_t>(std::min<size_t>(n, max_steps));
    if (steps_ > max_steps) throw Abort{fmt::format("does not end within {} steps", max_steps)};
}

void Budget::bytes(size_t n) {
    bytes_ += n;
    if (n > max_bytes || bytes_ > max_bytes) {
        throw Abort{fmt::format("makes more than {} MiB of text", max_bytes >> 20)};
    }
}

void Budget::nested() {
    if (++nested_ > max_nested) {
        throw Abort{fmt::format("makes more than {} lists and mappings", max_nested)};
    }
}

Budget::Call::Call(Budget& budget) : budget_(budget) {
    budget_.step();
    if (budget_.calls_ >= max_calls) {
        throw Abort{fmt::format("macros call each other more than {} deep", max_calls)};
    }
    ++budget_.calls_;
}

void check_size(const std::string& text) {
    constexpr size_t most = size_t{16} << 20;
    if (text.size() > most)
        throw Abort{fmt::format("makes a text of more than {} MiB", most >> 20)};
}

Walk::At::At(Walk& walk) : walk_(walk) {
    if (walk_.depth_ >= max_depth) {
        throw Abort{fmt::format("values nest more than {} deep", max_depth)};
    }
    if (++walk_.values_ > max_values) {
        throw Abort{fmt::format("compares too much, more than {} values", max_values)};
    }
    ++walk_.depth_;
}

Value none() {
    static const Value value(Json::binary({}));
    return value;
}

bool is_none(const Value& v) {
    return v.is_primitive() && !v.is_null() && !v.is_string() && !v.is_number() && !v.is_boolean();
}

bool is_integer(const Value& v) { return v.is_number_integer(); }
bool is_number(const Value& v) { return v.is_number(); }
bool is_mapping(const Value& v) { return v.is_object() && !v.is_callable(); }

Value from_json(const Json& json) {
    if (json.is_null() || json.is_binary() || json.is_discarded()) return none();
    if (json.is_array()) {
        Value result = Value::array();
        for (const Json& item : json) result.push_back(from_json(item));
        return result;
    }
    if (json.is_object()) {
        Value result = Value::object();
        for (const auto& [key, value] : json.items()) result.set(Value(key), from_json(value));
        return result;
    }
    return Value(json);
}

std::string type_name(const Value& v) {
    if (is_undefined(v)) return "undefined value";
    if (is_none(v)) return "None";
    if (v.is_boolean()) return "bool";
    if (v.is_number_integer()) return "int";
    if (v.is_number()) return "float";
    if (v.is_string()) return "str";
    if (v.is_array()) return "list";
    return v.is_callable() ? "function" : "dict";
}

std::string string_of(const Value& v) {
    if (!v.is_string()) throw Abort{fmt::format("expected a str, not {}", type_name(v))};
    return v.get<std::string>();
}

int64_t integer_of(const Value& v) {
    if (v.is_boolean()) return v.get<bool>() ? 1 : 0;
    if (!is_integer(v)) throw Abort{fmt::format("expected an int, not {}", type_name(v))};
    return v.get<int64_t>();
}

bool truth(const Value& v) {
    if (is_undefined(v) || is_none(v)) return false;
    if (v.is_boolean()) return v.get<bool>();
    if (v.is_number()) return v.get<double>() != 0.0;
    if (v.is_string()) return !v.get<std::string>().empty();
    return v.is_callable() || v.size() > 0;
}

namespace {

std::string float_text(double number) {
    if (std::isnan(number)) return "nan";
    if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
    std::string text = fmt::format("{}", number);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    return text;
}

std::string number_text(const Value& v) {
    // A large one of JSON may have no sign.
    if (v.is_number_integer()) return v.dump();
    return float_text(v.get<double>());
}

std::string quoted(const std::string& text) {
    const bool single = text.find('\'') != std::string::npos && text.find('"') == std::string::npos;
    const char quote = single ? '"' : '\'';
    std::string result(1, quote);
    for (const char32_t c : characters(text)) {
        if (c == '\n') {
            result += "\\n";
        } else if (c == '\t') {
            result += "\\t";
        } else if (c == '\r') {
            result += "\\r";
        } else if (c == '\\' || c == static_cast<char32_t>(quote)) {
            result += '\\';
            result += static_cast<char>(c);
        } else if (c < 0x20 || (c >= 0x7F && c < 0xA1) || c == 0xAD) {
            result += fmt::format("\\x{:02x}", static_cast<uint32_t>(c));
        } else {
            append_utf8(result, c);
        }
    }
    return result + quote;
}

void write_json_string(const std::string& text, bool ascii, std::string& out) {
    out += '"';
    for (const char32_t c : characters(text)) {
        static constexpr std::string_view special = "\"\\\n\r\t\b\f";
        static constexpr std::string_view letters = "\"\\nrtbf";
        const size_t i = c < 0x80 ? special.find(static_cast<char>(c)) : std::string_view::npos;
        if (i != std::string_view::npos) {
            out += '\\';
            out += letters[i];
        } else if (c < 0x20 || (ascii && c >= 0x7F && c < 0x10000)) {
            out += c == 0x7F ? "\x7F" : fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
        } else if (ascii && c >= 0x10000 && c <= 0x10FFFF) {
            const uint32_t offset = c - 0x10000;
            out += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (offset >> 10),
                               0xDC00 + (offset & 0x3FF));
        } else if (c > 0x10FFFF) {
            throw Abort{"text that is not valid UTF-8 has no JSON"};
        } else {
            append_utf8(out, c);
        }
    }
    out += '"';
}

void write_line(const JsonStyle& style, int level, std::string& out) {
    if (style.indent < 0) return;
    out += '\n';
    out.append(static_cast<size_t>(style.indent) * static_cast<size_t>(level), ' ');
}

void write_json(const Value& v, const JsonStyle& style, int level, std::string& out, Walk& walk) {
    const Walk::At here(walk);
    const auto separator = [&] {
        out += style.item_separator;
        write_line(style, level + 1, out);
    };
    check_size(out);
    if (is_undefined(v) || v.is_callable()) {
        throw Abort{fmt::format("{} has no JSON", type_name(v))};
    }
    if (is_none(v)) {
        out += "null";
    } else if (v.is_boolean()) {
        out += v.get<bool>() ? "true" : "false";
    } else if (v.is_number()) {
        out += number_text(v);
    } else if (v.is_string()) {
        write_json_string(v.get<std::string>(), style.ensure_ascii, out);
    } else if (v.size() == 0) {
        out += v.is_array() ? "[]" : "{}";
    } else if (v.is_array()) {
        out += '[';
        write_line(style, level + 1, out);
        for (size_t i = 0; i < v.size(); ++i) {
            if (i > 0) separator();
            write_json(v.at(i), style, level + 1, out, walk);
        }
        write_line(style, level, out);
        out += ']';
    } else {
        std::vector<Value> keys = elements(v);
        if (style.sort_keys) {
            std::ranges::stable_sort(
                keys, [&](const Value& a, const Value& b) { return less(a, b, walk); });
        }
        out += '{';
        write_line(style, level + 1, out);
        for (size_t i = 0; i < keys.size(); ++i) {
            if (i > 0) separator();
            write_json_string(str(keys[i]), style.ensure_ascii, out);
            out += style.key_separator;
            write_json(v.at(keys[i]), style, level + 1, out, walk);
        }
        write_line(style, level, out);
        out += '}';
    }
}

}  // namespace

std::string to_json(const Value& v, const JsonStyle& style) {
    std::string out;
    Walk walk;
    write_json(v, style, 0, out, walk);
    return out;
}

std::string str(const Value& v) {
    if (v.is_string()) return v.get<std::string>();
    return is_undefined(v) ? std::string() : repr(v);
}

namespace {

void write_repr(const Value& v, std::string& out, Walk& walk) {
    const Walk::At here(walk);
    check_size(out);
    if (is_undefined(v)) {
        out += "Undefined";
    } else if (is_none(v)) {
        out += "None";
    } else if (v.is_boolean()) {
        out += v.get<bool>() ? "True" : "False";
    } else if (v.is_number()) {
        out += number_text(v);
    } else if (v.is_string()) {
        out += quoted(v.get<std::string>());
    } else if (v.is_callable()) {
        out += "<function>";
    } else {
        out += v.is_array() ? '[' : '{';
        const std::vector<Value> parts = elements(v);
        for (size_t i = 0; i < parts.size(); ++i) {
            if (i > 0) out += ", ";
            write_repr(parts[i], out, walk);
            if (v.is_array()) continue;
            out += ": ";
            write_repr(v.at(parts[i]), out, walk);
        }
        out += v.is_array() ? ']' : '}';
    }
}

}  // namespace

std::string repr(const Value& v) {
    std::string out;
    Walk walk;
    write_repr(v, out, walk);
    return out;
}

bool equal(const Value& a, const Value& b, Walk& walk) {
    const Walk::At here(walk);
    const auto numeric = [](const Value& v) { return v.is_number() || v.is_boolean(); };
    if (numeric(a) && numeric(b)) {
        if (!a.is_number_float() && !b.is_number_float()) return integer_of(a) == integer_of(b);
        const auto number = [](const Value& v) {
            return v.is_boolean() ? static_cast<double>(v.get<bool>()) : v.get<double>();
        };
        return number(a) == number(b);
    }
    if (is_none(a) || is_none(b)) return is_none(a) && is_none(b);
    if (is_undefined(a) || is_undefined(b)) return is_undefined(a) && is_undefined(b);
    if (a.is_string() && b.is_string()) return a.get<std::string>() == b.get<std::string>();
    if (a.is_array() && b.is_array()) {
        if (a.size() != b.size()) return false;
        for (size_t i = 0; i < a.size(); ++i) {
            if (!equal(a.at(i), b.at(i), walk)) return false;
        }
        return true;
    }
    if (is_mapping(a) && is_mapping(b)) {
        if (a.size() != b.size()) return false;
        return std::ranges::all_of(elements(a), [&](const Value& key) {
            return b.contains(key) && equal(a.at(key), b.at(key), walk);
        });
    }
    return a.is_callable() && b.is_callable() && a == b;
}

bool equal(const Value& a, const Value& b) {
    Walk walk;
    return equal(a, b, walk);
}

bool less(const Value& a, const Value& b, Walk& walk) {
    const Walk::At here(walk);
    const auto numeric = [](const Value& v) { return v.is_number() || v.is_boolean(); };
    if (numeric(a) && numeric(b)) {
        if (!a.is_number_float() && !b.is_number_float()) return integer_of(a) < integer_of(b);
        return (a.is_boolean() ? static_cast<double>(integer_of(a)) : a.get<double>()) <
               (b.is_boolean() ? static_cast<double>(integer_of(b)) : b.get<double>());
    }
    if (a.is_string() && b.is_string()) return a.get<std::string>() < b.get<std::string>();
    if (a.is_array() && b.is_array()) {
        for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
            if (!equal(a.at(i), b.at(i), walk)) return less(a.at(i), b.at(i), walk);
        }
        return a.size() < b.size();
    }
    throw Abort{fmt::format("cannot compare {} and {}", type_name(a), type_name(b))};
}

bool less(const Value& a, const Value& b) {
    Walk walk;
    return less(a, b, walk);
}

bool contains(const Value& container, const Value& item) {
    if (container.is_string()) {
        return container.get<std::string>().find(string_of(item)) != std::string::npos;
    }
    if (container.is_array()) {
        Walk walk;
        for (size_t i = 0; i < container.size(); ++i) {
            if (equal(container.at(i), item, walk)) return true;
        }
        return false;
    }
    if (is_mapping(container)) return item.is_hashable() && container.contains(item);
    if (is_undefined(container)) return false;
    throw Abort{fmt::format("{} cannot contain anything", type_name(container))};
}

std::vector<Value> elements(const Value& v) {
    std::vector<Value> result;
    if (v.is_string()) {
        for (const char32_t c : characters(v.get<std::string>())) {
            result.push_back(text(utf8({&c, 1})));
        }
    } else if (v.is_array()) {
        for (size_t i = 0; i < v.size(); ++i) result.push_back(v.at(i));
    } else if (is_mapping(v)) {
        result = Value(v).keys();
    } else if (!is_undefined(v)) {
        throw Abort{fmt::format("{} cannot be iterated over", type_name(v))};
    }
    return result;
}

int64_t length(const Value& v) {
    if (is_undefined(v)) return 0;
    if (v.is_string()) return static_cast<int64_t>(n_characters(v.get<std::string>()));
    if (v.is_array() || is_mapping(v)) return static_cast<int64_t>(v.size());
    throw Abort{fmt::format("{} has no length", type_name(v))};
}

size_t weight(const std::vector<Value>& values) {
    size_t bytes = values.size() * sizeof(Value);
    for (const Value& v : values) bytes += v.is_string() ? v.size() : 0;
    return bytes;
}

Value list(std::vector<Value> items) {
    Value result = Value::array();
    for (Value& item : items) result.push_back(std::move(item));
    return result;
}

}  // namespace pleat::jinja
