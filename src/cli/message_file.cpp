#include "cli/message_file.h"

#include <filesystem>

#include "base/error.h"
#include "cli/text_file.h"
#include "lab/text_output.h"

namespace pleat::cli {

using nlohmann::ordered_json;

void save_messages(const std::string& path, const ordered_json& messages, bool overwrite) {
    std::error_code ignored;  // what cannot be looked at cannot be written either
    if (!overwrite && std::filesystem::exists(path, ignored)) {
        fail("{} exists: name another file, or write over it with /save! {}", path, path);
    }
    write_text(path, messages.dump(2) + "\n");
}

ordered_json load_messages(const std::string& path) {
    // Here "-" is no standard input: the chat itself comes from there.
    const std::string text = read_text_file(path == "-" ? "./-" : path, "the conversation");
    ordered_json json;
    try {
        json = ordered_json::parse(text);
    } catch (const ordered_json::parse_error& error) {
        fail("{} is no JSON (byte {}): expected a list of messages, as /save writes it", path,
             error.byte);
    }
    if (json.is_object() && json.contains("messages")) json = ordered_json(json["messages"]);
    if (!json.is_array()) {
        fail("{} holds no conversation: expected a list of messages, as /save writes it", path);
    }
    return json;
}

}  // namespace pleat::cli
