#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace pleat {

/// A fault of a request's tools or of the grammar that they ask for.
class ToolsError : public Error {
  public:
    using Error::Error;
};

/// A tool that a model may call.
struct Tool {
    std::string name;
    std::string description = {};
    /// JSON Schema of the arguments: an object. Without additionalProperties there are none.
    nlohmann::ordered_json parameters = {};
};

/// OpenAI's list [{type: "function", function: {name, description, parameters}}]. Throws Error that
/// names the entry when one is malformed or a name comes twice.
std::vector<Tool> read_tools(const nlohmann::ordered_json& tools);

/// A list that read_tools() has read, as templates see it: each function has parameters, of a type
/// and with properties, if none.
nlohmann::ordered_json template_tools(const nlohmann::ordered_json& tools);

/// What texts a schema allows, when it allows nothing but texts and forms that write these without
/// quotes can hold to it: the listed ones, or any when the list is empty. Nothing when the value
/// has to be written as JSON: other types, and texts with bounds of their own.
std::optional<std::vector<std::string>> bare_texts(const nlohmann::ordered_json& schema);

/// (tool, parameter) of the parameters that are such texts.
std::vector<std::pair<std::string, std::string>> text_parameters(const std::vector<Tool>& tools);

}  // namespace pleat
