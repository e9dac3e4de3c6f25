#include "jinja/unicode.h"

namespace pleat::jinja {
namespace {

/// A byte that is no UTF-8 is kept as a number that no character has.
constexpr char32_t stray = 0x80000000;

/// The character at `pos`, which moves behind it.
char32_t next(std::string_view text, size_t& pos) {
    const auto byte = [&](size_t i) {
        return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
    };
    const unsigned lead = byte(pos);
    const size_t n = lead < 0x80   ? 1
                     : lead < 0xC2 ? 0
                     : lead < 0xE0 ? 2
                     : lead < 0xF0 ? 3
                     : lead < 0xF5 ? 4
                                   : 0;
    if (n == 1) {
        ++pos;
        return lead;
    }
    char32_t c = n == 0 ? 0 : lead & (0x7FU >> n);
    for (size_t i = 1; i < n; ++i) {
        if ((byte(pos + i) & 0xC0) != 0x80) {
            c = 0;
            break;
        }
        c = c << 6 | (byte(pos + i) & 0x3FU);
    }
    constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (n == 0 || c < least[n] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) {
        ++pos;
        return stray | lead;
    }
    pos += n;
    return c;
}

}  // namespace

std::u32string characters(std::string_view text) {
    std::u32string result;
    result.reserve(text.size());
    for (size_t pos = 0; pos < text.size();) result += next(text, pos);
    return result;
}

size_t n_characters(std::string_view text) {
    size_t n = 0;
    for (size_t pos = 0; pos < text.size(); ++n) next(text, pos);
    return n;
}

void append_utf8(std::string& text, char32_t c) {
    const auto add = [&](char32_t byte) { text += static_cast<char>(byte); };
    if ((c & stray) != 0) {
        add(c & 0xFF);
    } else if (c < 0x80) {
        add(c);
    } else if (c < 0x800) {
        add(0xC0 | c >> 6);
        add(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        add(0xE0 | c >> 12);
        add(0x80 | (c >> 6 & 0x3F));
        add(0x80 | (c & 0x3F));
    } else {
        add(0xF0 | c >> 18);
        add(0x80 | (c >> 12 & 0x3F));
        add(0x80 | (c >> 6 & 0x3F));
        add(0x80 | (c & 0x3F));
    }
}

std::string utf8(std::u32string_view characters) {
    std::string text;
    for (const char32_t c : characters) append_utf8(text, c);
    return text;
}

bool is_space(char32_t c) {
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000;
}

size_t leading_space(std::string_view text) {
    size_t pos = 0;
    while (pos < text.size()) {
        size_t behind = pos;
        if (!is_space(next(text, behind))) break;
        pos = behind;
    }
    return pos;
}

size_t trailing_space(std::string_view text) {
    size_t end = text.size();
    while (end > 0) {
        size_t begin = end - 1;
        while (begin > 0 && end - begin < 4 && (text[begin] & 0xC0) == 0x80) --begin;
        size_t behind = begin;
        if (!is_space(next(text, behind)) || behind != end) break;
        end = begin;
    }
    return text.size() - end;
}

char32_t to_upper(char32_t c) {
    if (c >= 'a' && c <= 'z') return c - 32;
    if ((c >= 0xE0 && c <= 0xFE && c != 0xF7) || (c >= 0x3B1 && c <= 0x3C9 && c != 0x3C2) ||
        (c >= 0x430 && c <= 0x44F)) {
        return c - 32;
    }
    if (c >= 0x450 && c <= 0x45F) return c - 80;
    if (c >= 0x100 && c <= 0x137 && c != 0x131) return c & ~char32_t{1};
    return c;
}

char32_t to_lower(char32_t c) {
    if (c >= 'A' && c <= 'Z') return c + 32;
    if ((c >= 0xC0 && c <= 0xDE && c != 0xD7) || (c >= 0x391 && c <= 0x3A9 && c != 0x3A2) ||
        (c >= 0x410 && c <= 0x42F)) {
        return c + 32;
    }
    if (c >= 0x400 && c <= 0x40F) return c + 80;
    if (c >= 0x100 && c <= 0x137 && c != 0x130) return c | char32_t{1};
    return c;
}

std::string to_upper(std::string_view text) {
    std::u32string all = characters(text);
    for (char32_t& c : all) c = to_upper(c);
    return utf8(all);
}

std::string to_lower(std::string_view text) {
    std::u32string all = characters(text);
    for (char32_t& c : all) c = to_lower(c);
    return utf8(all);
}

}  // namespace pleat::jinja
