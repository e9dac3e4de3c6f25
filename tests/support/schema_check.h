#pragma once

#include <nlohmann/json.hpp>

namespace pleat::test {

/// Whether a value is valid under a schema of the keywords that random schemas are made of. It
/// reads the specification and shares nothing with the translation to grammars. Patterns are
/// std::regex's. Throws std::runtime_error for another keyword.
bool is_valid(const nlohmann::json& schema, const nlohmann::json& value,
              const nlohmann::json& root);

}  // namespace pleat::test
