#pragma once

#include <string>

#include "serve/request_fields.h"
#include "text/tokenizer.h"

namespace pleat {

/// What the answer must look like, as GBNF; empty: anything. From one of `grammar` (GBNF),
/// `json_schema`, and `response_format` (text, json_object with or without a schema, json_schema).
/// Throws RequestError (400) that names the field: two of them at once, an unknown type, a schema
/// that is not supported.
std::string constraint_fields(const Fields& fields);

/// Throws RequestError (400) that names the field which `grammar` came from, when it is refused.
void check_constraint(const Fields& fields, const std::string& grammar, const Tokenizer& tokenizer);

}  // namespace pleat
