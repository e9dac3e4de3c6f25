#include "serve/constraint_fields.h"

#include <fmt/format.h>

#include "schema/json_schema.h"
#include "text/grammar.h"

namespace pleat {
namespace {

using nlohmann::ordered_json;

std::string grammar_of_schema(const ordered_json& schema, const std::string& param) {
    return of_field(param, [&] { return json_schema_grammar(schema); });
}

std::string grammar_of_format(const Fields& format) {
    const std::string type = format.text("type").value_or("text");
    if (type == "text") return {};
    if (type == "json_object") {
        const ordered_json* const schema = format.find("schema");
        return schema == nullptr ? json_object_grammar()
                                 : grammar_of_schema(*schema, format.param("schema"));
    }
    if (type != "json_schema") {
        refuse_field(format.param("type"), "must be \"text\", \"json_object\" or \"json_schema\"");
    }
    const ordered_json* const wrapper = format.find("json_schema");
    if (wrapper == nullptr) refuse_field(format.param("json_schema"), "is missing");
    const Fields inner(*wrapper, format.param("json_schema"));
    const ordered_json* const schema = inner.find("schema");
    if (schema == nullptr) refuse_field(inner.param("schema"), "is missing");
    return grammar_of_schema(*schema, inner.param("schema"));
}

}  // namespace

std::string constraint_fields(const Fields& fields) {
    std::string grammar = fields.text("grammar").value_or("");
    if (grammar.find('\0') != std::string::npos) {
        refuse_field(fields.param("grammar"), "must not hold a zero character");
    }
    std::string from = grammar.empty() ? "" : "grammar";
    const auto take = [&](const std::string& name, std::string other) {
        if (other.empty()) return;
        if (!from.empty()) {
            refuse_field(fields.param(name), fmt::format("cannot be combined with {}", from));
        }
        from = name;
        grammar = std::move(other);
    };
    if (const ordered_json* const schema = fields.find("json_schema")) {
        take("json_schema", grammar_of_schema(*schema, fields.param("json_schema")));
    }
    if (const ordered_json* const format = fields.find("response_format")) {
        take("response_format",
             grammar_of_format(Fields(*format, fields.param("response_format"))));
    }
    return grammar;
}

void check_constraint(const Fields& fields, const std::string& grammar,
                      const Tokenizer& tokenizer) {
    if (grammar.empty()) return;
    std::string_view name = "response_format";
    if (fields.has("json_schema")) name = "json_schema";
    if (!fields.text("grammar").value_or("").empty()) name = "grammar";
    try {
        check_grammar(grammar, "root", tokenizer);
    } catch (const Error& e) {
        // Says itself that it is the grammar's.
        throw RequestError(400, e.what(), fields.param(name));
    }
}

}  // namespace pleat
