#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "schema/grammar_text.h"

namespace pleat {

struct SchemaLimits {
    size_t bytes = 256 << 10;
    int depth = 200;      ///< of JSON, and of references and choices that lead to each other
    size_t nodes = 5000;  ///< sub-schemas that become rules of their own
    size_t optional_properties = 400;  ///< of one object: a sampler follows them all at once
    size_t steps = 300'000;            ///< sub-schemas looked at while choices are unfolded
    uint64_t repetitions = 65'536;     ///< minLength, minItems; larger maxima are lowered to it
    GrammarText::Size grammar = {240 << 10, 19'000, 480'000};  ///< check_grammar's, with some room
};

/// Adds the rules of a JSON Schema (docs/json-schema.md has the supported part; 2020-12 and
/// draft-07 where they agree) to a grammar and returns the name of the rule for a value that it
/// allows. Every keyword is honoured or refused: throws Error that names an unsupported keyword and
/// where it stands (JSON pointer), a bad value, a reference that leads nowhere, or a limit.
/// Properties come in the order in which the schema names them.
std::string add_json_schema(GrammarText& grammar, const nlohmann::ordered_json& schema,
                            const SchemaLimits& limits = {});

/// Rules of any JSON value, of any JSON object; bounded white space.
std::string add_json_value(GrammarText& grammar);
std::string add_json_object(GrammarText& grammar);

/// The grammar of one JSON value under a schema.
std::string json_schema_grammar(const nlohmann::ordered_json& schema,
                                const SchemaLimits& limits = {});
std::string json_object_grammar();

}  // namespace pleat
