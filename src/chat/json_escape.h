#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <string_view>

namespace pleat {

/// A byte of a UTF-8 text as it stands in a JSON string.
inline void append_escaped(std::string& json, char byte) {
    if (byte == '"' || byte == '\\') {
        json += '\\';
        json += byte;
    } else if (byte == '\n') {
        json += "\\n";
    } else if (static_cast<unsigned char>(byte) < 0x20) {
        fmt::format_to(std::back_inserter(json), "\\u{:04x}", byte);
    } else {
        json += byte;
    }
}

inline std::string json_quoted(std::string_view text) {
    std::string json = "\"";
    for (const char c : text) append_escaped(json, c);
    return json + '"';
}

}  // namespace pleat
