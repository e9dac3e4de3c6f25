#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "schema/grammar_text.h"

namespace pleat {

struct Property {
    std::string name;
    nlohmann::ordered_json schema;  ///< with the definitions that it may refer to
    bool required = false;
};

/// `part` of `schema` with its definitions, so that references in it still lead somewhere.
nlohmann::ordered_json with_definitions(nlohmann::ordered_json part,
                                        const nlohmann::ordered_json& schema);

/// The properties of an object schema that says no more than which there are and which are
/// required. Nothing when it says more, which forms of their own cannot hold.
std::optional<std::vector<Property>> plain_properties(const nlohmann::ordered_json& schema);

/// The body of a rule: `items` in order, those that are not required only sometimes, `separator`
/// (GBNF, may be empty) between those that are there.
std::string optional_sequence(GrammarText& grammar, const std::vector<std::string>& items,
                              const std::vector<bool>& required, const std::string& separator);

}  // namespace pleat
