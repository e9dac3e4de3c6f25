#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pleat::jinja {

/// One word of a tag.
struct Token {
    enum class Kind : uint8_t { name, text, integer, real, symbol, end };
    Kind kind = Kind::end;
    std::string text = {};  ///< of a text literal: what it stands for
    size_t pos = 0;         ///< byte in the source

    bool is(std::string_view symbol_or_name) const {
        return (kind == Kind::symbol || kind == Kind::name) && text == symbol_or_name;
    }
};

/// A template as it reads from top to bottom: text to be shown and tags. Comments and raw blocks
/// are gone; white space is stripped as Hugging Face has it (trim_blocks, lstrip_blocks, no newline
/// at the end) and as signs in the tags say.
struct Piece {
    enum class Kind : uint8_t { text, print, statement };
    Kind kind = Kind::text;
    std::string text = {};           ///< of a text
    std::vector<Token> tokens = {};  ///< of a tag, the last one an `end`
    size_t pos = 0;
};

/// Throws Error with line and character for what is no Jinja, and for more words or open brackets
/// in a tag than the parser may be given.
std::vector<Piece> lex(std::string_view source);

/// Throws Error "chat template: line ..., character ...: message".
[[noreturn]] void fail_at(std::string_view source, size_t pos, std::string_view message);
size_t line_of(std::string_view source, size_t pos);

}  // namespace pleat::jinja
