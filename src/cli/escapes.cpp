#include "cli/escapes.h"

#include <charconv>

namespace pleat::cli {
namespace {

/// The character after a backslash, or none.
std::string_view simple_escape(char name) {
    switch (name) {
        case 'n':
            return "\n";
        case 'r':
            return "\r";
        case 't':
            return "\t";
        case '\'':
            return "'";
        case '"':
            return "\"";
        case '\\':
            return "\\";
        default:
            return {};
    }
}

}  // namespace

std::string process_escapes(std::string_view text) {
    std::string result;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '\\' || i + 1 == text.size()) {
            result += text[i];
            continue;
        }
        const char name = text[++i];
        if (const std::string_view simple = simple_escape(name); !simple.empty()) {
            result += simple;
            continue;
        }
        if (name == 'x' && i + 2 < text.size()) {
            const char* const digits = text.data() + i + 1;
            unsigned byte = 0;
            const auto [end, error] = std::from_chars(digits, digits + 2, byte, 16);
            if (error == std::errc{} && end == digits + 2) {
                result += static_cast<char>(byte);
                i += 2;
                continue;
            }
        }
        result += '\\';
        result += name;
    }
    return result;
}

}  // namespace pleat::cli
