#pragma once

#include <string_view>

#include "jinja/values.h"

namespace pleat::jinja {

// What Python's operators make of two values. All throw Abort where Python raises an error.

/// + - * / // % **, and ~ of Jinja.
Value arithmetic(std::string_view op, const Value& a, const Value& b, Budget& budget);
/// == != < > <= >= in "not in"
bool comparison(std::string_view op, const Value& a, const Value& b);
Value negative(const Value& v);

/// object.name: undefined where there is none.
Value attribute(const Value& object, const std::string& name);
/// object[key]
Value item(const Value& object, const Value& key);
/// object[start:stop:step]; undefined or None: not given.
Value slice(const Value& object, const Value& start, const Value& stop, const Value& step);

/// format % values, with %s %r %d %i %f %x %% and width, sign and precision.
std::string formatted(const std::string& format, const Value& values);

}  // namespace pleat::jinja
