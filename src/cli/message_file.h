#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace pleat::cli {

/// A conversation as a JSON file: the list of messages of OpenAI's API. Throws Error, also when
/// there is a file already and `overwrite` was not asked for.
void save_messages(const std::string& path, const nlohmann::ordered_json& messages, bool overwrite);

/// Such a list, or the "messages" of an object, as in the body of a request. Throws Error.
nlohmann::ordered_json load_messages(const std::string& path);

}  // namespace pleat::cli
