#pragma once

#include <string>

#include "jinja/values.h"

namespace pleat::jinja {

using Scope = std::shared_ptr<minja::Context>;

/// A filter: the value comes first among the arguments. Throws Abort.
using Filter = Value (*)(const Scope& scope, minja::ArgumentsValue& arguments, Budget& budget);

/// Jinja's own and Hugging Face's tojson. Null when there is none of that name.
Filter find_filter(std::string_view name);

/// A test, behind `is`: the value comes first. Throws Abort. Null when there is none.
using Predicate = bool (*)(minja::ArgumentsValue& arguments);
Predicate find_test(std::string_view name);

}  // namespace pleat::jinja
