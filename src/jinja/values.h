#pragma once

#include <cstdint>
#include <minja.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace pleat::jinja {

// minja's values with the meaning that they have in Python. minja's null stands for what is
// undefined; None is a value of its own.
using Value = minja::Value;

/// Ends a rendering. No std::exception on purpose: minja catches and rewraps those at every level
/// that they leave.
struct Abort {
    std::string reason;
    bool placed = false;  ///< says where, or need not
};

/// What one rendering may use; a template and what it is given are strangers' programs and data.
class Budget {
  public:
    static constexpr int64_t max_steps = 3'000'000;
    static constexpr size_t max_bytes = size_t{256} << 20;  ///< of texts and lists made
    static constexpr int64_t max_nested = 100'000;  ///< values put into values, which can go deep
    static constexpr int max_calls = 100;           ///< macros in each other

    void step(size_t n = 1);
    void bytes(size_t n);
    void nested();

    /// One call that has not returned yet.
    class Call {
      public:
        explicit Call(Budget& budget);
        ~Call() { --budget_.calls_; }
        Call(const Call&) = delete;
        Call& operator=(const Call&) = delete;

      private:
        Budget& budget_;
    };

  private:
    int64_t steps_ = 0;
    size_t bytes_ = 0;
    int64_t nested_ = 0;
    int calls_ = 0;
};

/// Throws Abort when a text under way is larger than any prompt.
void check_size(const std::string& text);

/// What turns a value into text or compares it goes through the value's own ones with one of these:
/// a list may hold itself, and the same list may stand in another a thousand times.
class Walk {
  public:
    static constexpr int max_depth = 1000;
    static constexpr int64_t max_values = 8'000'000;  ///< more than a text has room for

    /// A value that the walk is at, for as long as this lives. Throws Abort at either bound.
    class At {
      public:
        explicit At(Walk& walk);
        ~At() { --walk_.depth_; }
        At(const At&) = delete;
        At& operator=(const At&) = delete;

      private:
        Walk& walk_;
    };

  private:
    int depth_ = 0;
    int64_t values_ = 0;
};

Value none();
Value from_json(const nlohmann::ordered_json& json);
inline Value text(std::string text) { return Value(std::move(text)); }

inline bool is_undefined(const Value& v) { return v.is_null(); }
bool is_none(const Value& v);
bool is_integer(const Value& v);  ///< no boolean
bool is_number(const Value& v);   ///< no boolean
bool is_mapping(const Value& v);

/// The name of the type in Python, for messages.
std::string type_name(const Value& v);
std::string string_of(const Value& v);  ///< that it must be; else Abort
int64_t integer_of(const Value& v);     ///< of an integer or a boolean; else Abort

bool truth(const Value& v);
/// str() and repr().
std::string str(const Value& v);
std::string repr(const Value& v);
/// == and <; many comparisons for one purpose share one walk.
bool equal(const Value& a, const Value& b, Walk& walk);
bool equal(const Value& a, const Value& b);
bool less(const Value& a, const Value& b, Walk& walk);
bool less(const Value& a, const Value& b);
/// `item in container`.
bool contains(const Value& container, const Value& item);
/// What iterating gives: the characters of a text, the keys of a mapping.
std::vector<Value> elements(const Value& v);
int64_t length(const Value& v);
Value list(std::vector<Value> items);
/// Bytes that a copy of the values takes: texts are copied, lists and mappings are shared.
size_t weight(const std::vector<Value>& values);

struct JsonStyle {
    bool ensure_ascii = false;
    int indent = -1;  ///< negative: on one line
    std::string item_separator = ", ";
    std::string key_separator = ": ";
    bool sort_keys = false;
};
/// json.dumps().
std::string to_json(const Value& v, const JsonStyle& style);

}  // namespace pleat::jinja
