#include "serve/request_fields.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "text/utf8_stream.h"

namespace pleat {
namespace {

using nlohmann::ordered_json;

[[noreturn]] void refuse_body(const std::string& message) { throw RequestError(400, message); }

/// What the text would become, counted without making it.
void check_size(std::string_view text, const RequestLimits& limits) {
    std::vector<size_t> members;  // of the objects and arrays that are open
    size_t all_members = 0;
    size_t values = 0;
    bool in_string = false;
    for (size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (in_string) {
            if (c == '\\') {
                ++i;
            } else if (c == '"') {
                in_string = false;
            }
            continue;
        }
        switch (c) {
            case '"':
                in_string = true;
                break;
            case '[':
            case '{':
                if (members.size() >= static_cast<size_t>(limits.json_depth)) {
                    refuse_body(fmt::format("the body's arrays and objects are more than {} deep",
                                            limits.json_depth));
                }
                members.push_back(0);
                ++values;
                break;
            case ']':
            case '}':
                if (!members.empty()) members.pop_back();
                break;
            case ':':
                ++all_members;
                if (!members.empty() && ++members.back() > limits.json_members) {
                    refuse_body(fmt::format("an object of the body has more than {} members",
                                            limits.json_members));
                }
                break;
            case ',':
                ++values;
                break;
            default:
                break;
        }
        if (all_members > limits.json_all_members) {
            refuse_body(fmt::format("the body's objects have more than {} members in all",
                                    limits.json_all_members));
        }
        if (values > limits.json_values) {
            refuse_body(fmt::format("the body has more than {} values", limits.json_values));
        }
    }
}

std::string_view kind_of(const ordered_json& value) {
    switch (value.type()) {
        case ordered_json::value_t::null:
            return "null";
        case ordered_json::value_t::object:
            return "an object";
        case ordered_json::value_t::array:
            return "an array";
        case ordered_json::value_t::string:
            return "a string";
        case ordered_json::value_t::boolean:
            return "a boolean";
        default:
            return "a number";
    }
}

[[noreturn]] void refuse_type(const ordered_json& value, const std::string& param,
                              std::string_view expected) {
    refuse_field(param, fmt::format("must be {}, but is {}", expected, kind_of(value)));
}

}  // namespace

ordered_json parse_body(std::string_view body, const RequestLimits& limits) {
    if (!is_utf8(body)) refuse_body("the body is not valid UTF-8");
    check_size(body, limits);
    ordered_json result;
    try {
        result = ordered_json::parse(body);
    } catch (const ordered_json::parse_error& e) {
        refuse_body(fmt::format("the body is not valid JSON (at byte {})", e.byte));
    } catch (const ordered_json::exception&) {
        refuse_body("the body holds a number that is too large");
    }
    if (!result.is_object()) {
        refuse_body(fmt::format("the body must be a JSON object, but is {}", kind_of(result)));
    }
    return result;
}

void refuse_field(const std::string& param, const std::string& message) {
    throw RequestError(400, fmt::format("{}: {}", param, message), param);
}

bool as_boolean(const ordered_json& value, const std::string& param) {
    if (!value.is_boolean()) refuse_type(value, param, "a boolean");
    return value.get<bool>();
}

int64_t as_integer(const ordered_json& value, const std::string& param, int64_t low, int64_t high) {
    if (!value.is_number()) refuse_type(value, param, "an integer");
    const auto refuse_range = [&]() {
        refuse_field(param,
                     fmt::format("must be between {} and {}, but is {}", low, high, value.dump()));
    };
    if (value.is_number_float()) {
        const double number = value.get<double>();
        if (std::trunc(number) != number) refuse_field(param, "must be an integer");
        // Doubles up to here are whole numbers that an int64_t holds.
        constexpr double exact = 9007199254740992.0;
        if (!(number >= -exact && number <= exact)) refuse_range();
        const auto integer = static_cast<int64_t>(number);
        if (integer < low || integer > high) refuse_range();
        return integer;
    }
    if (value.is_number_unsigned() &&
        value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        refuse_range();
    }
    const auto integer = value.get<int64_t>();
    if (integer < low || integer > high) refuse_range();
    return integer;
}

double as_number(const ordered_json& value, const std::string& param, double low, double high) {
    if (!value.is_number()) refuse_type(value, param, "a number");
    const auto number = value.get<double>();
    if (!(number >= low && number <= high)) {
        refuse_field(param,
                     fmt::format("must be between {} and {}, but is {}", low, high, value.dump()));
    }
    return number;
}

const std::string& as_text(const ordered_json& value, const std::string& param) {
    if (!value.is_string()) refuse_type(value, param, "a string");
    return value.get_ref<const std::string&>();
}

const ordered_json& as_array(const ordered_json& value, const std::string& param, size_t max_size) {
    if (!value.is_array()) refuse_type(value, param, "an array");
    if (value.size() > max_size) {
        refuse_field(param, fmt::format("has {} elements, at most {}", value.size(), max_size));
    }
    return value;
}

const ordered_json& as_object(const ordered_json& value, const std::string& param) {
    if (!value.is_object()) refuse_type(value, param, "an object");
    return value;
}

Fields::Fields(const ordered_json& object, std::string path)
    : object_(object), path_(std::move(path)) {
    as_object(object_, path_.empty() ? "the body" : path_);
}

const ordered_json* Fields::find(std::string_view name) const {
    const auto found = object_.find(name);
    if (found == object_.end() || found->is_null()) return nullptr;
    return &*found;
}

std::string Fields::param(std::string_view name) const {
    return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

std::optional<bool> Fields::boolean(std::string_view name) const {
    const ordered_json* const value = find(name);
    if (value == nullptr) return std::nullopt;
    return as_boolean(*value, param(name));
}

bool Fields::boolean(std::string_view name, bool otherwise) const {
    return boolean(name).value_or(otherwise);
}

std::optional<int64_t> Fields::integer(std::string_view name, int64_t low, int64_t high) const {
    const ordered_json* const value = find(name);
    if (value == nullptr) return std::nullopt;
    return as_integer(*value, param(name), low, high);
}

std::optional<double> Fields::number(std::string_view name, double low, double high) const {
    const ordered_json* const value = find(name);
    if (value == nullptr) return std::nullopt;
    return as_number(*value, param(name), low, high);
}

std::optional<std::string> Fields::text(std::string_view name) const {
    const ordered_json* const value = find(name);
    if (value == nullptr) return std::nullopt;
    return as_text(*value, param(name));
}

std::optional<std::vector<std::string>> Fields::texts(std::string_view name,
                                                      size_t max_size) const {
    const ordered_json* const value = find(name);
    if (value == nullptr) return std::nullopt;
    std::vector<std::string> result;
    for (const ordered_json& element : as_array(*value, param(name), max_size)) {
        result.push_back(as_text(element, fmt::format("{}[{}]", param(name), result.size())));
    }
    return result;
}

}  // namespace pleat
