#pragma once

#include "jinja/values.h"

namespace pleat::jinja {

/// object.name(...) of texts, lists and mappings; a mapping's own function comes first. Throws
/// Abort when there is none.
Value call_method(const Value& object, const std::string& name, minja::ArgumentsValue& arguments,
                  const std::shared_ptr<minja::Context>& scope);

}  // namespace pleat::jinja
