#include "lab/json_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "plan/message.h"

namespace pleat {
namespace {

using nlohmann::json;
using Type = JsonText::Type;

constexpr size_t max_depth = 64;
constexpr size_t shown = 60;
constexpr int number_overflow = 406;  // the parser's own number for it

/// Builds a JsonText from the events of nlohmann's parser, whose own tree would make doubles of
/// integers over 64 bits and keep the last of two equal keys.
class Builder {
  public:
    Builder(std::string_view text, const std::string& where) : text_(text), where_(where) {}

    JsonText take() { return std::move(root_); }

    bool null() { return add({}); }
    bool boolean(bool) { return add({.type = Type::boolean}); }
    bool number_integer(json::number_integer_t value) { return number(std::to_string(value)); }
    bool number_unsigned(json::number_unsigned_t value) { return number(std::to_string(value)); }
    bool number_float(json::number_float_t, const std::string& written) { return number(written); }
    bool string(std::string& value) { return add({.type = Type::text, .text = std::move(value)}); }
    bool binary(json::binary_t&) { return false; }  // not in a text
    bool start_object(size_t) { return open(Type::object); }
    bool start_array(size_t) { return open(Type::array); }
    bool key(std::string& value) {
        open_.back()->keys.push_back(std::move(value));
        return true;
    }
    bool end_object() {
        std::vector<std::string> keys = open_.back()->keys;
        std::ranges::sort(keys);
        const auto twice = std::ranges::adjacent_find(keys);
        if (twice != keys.end()) {
            fail("{}: the field {} comes twice in one object", where_,
                 escaped(std::string_view(*twice).substr(0, shown)));
        }
        return end_array();
    }
    bool end_array() {
        open_.pop_back();
        return true;
    }
    bool parse_error(size_t byte, const std::string&, const json::exception& error) {
        const std::string_view before = text_.substr(0, byte > 0 ? byte - 1 : 0);
        const auto line = std::ranges::count(before, '\n') + 1;
        const size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is the start of the text
        fail("{}: {} at {}column {}", where_,
             error.id == number_overflow ? "a number too large to read" : "not valid JSON",
             line > 1 ? fmt::format("line {}, ", line) : "", before.size() - line_begin + 1);
    }

  private:
    bool number(std::string written) {
        return add({.type = Type::number, .text = std::move(written)});
    }

    bool open(Type type) {
        if (open_.size() == max_depth) {
            fail("{}: nested more than {} levels deep, which no probe is", where_, max_depth);
        }
        add({.type = type});
        open_.push_back(open_.empty() ? &root_ : &open_.back()->values.back());
        return true;
    }

    bool add(JsonText value) {
        if (open_.empty()) {
            root_ = std::move(value);
        } else {
            // Only the last value of an open one is open, so no pointer points past it.
            open_.back()->values.push_back(std::move(value));
        }
        return true;
    }

    std::string_view text_;
    const std::string& where_;
    JsonText root_;
    std::vector<JsonText*> open_;
};

}  // namespace

const JsonText* JsonText::find(std::string_view key) const {
    const auto found = std::ranges::find(keys, key);
    return found == keys.end() ? nullptr : &values[static_cast<size_t>(found - keys.begin())];
}

JsonText parse_json_text(std::string_view text, const std::string& where) {
    Builder builder(text, where);
    if (!json::sax_parse(text, &builder)) fail("{}: not valid JSON", where);
    return builder.take();
}

}  // namespace pleat
