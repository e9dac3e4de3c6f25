#include "lab/phrase.h"

#include <algorithm>
#include <cstddef>

namespace pleat {
namespace {

constexpr std::string_view white_space = " \t\n\v\f\r";
constexpr std::string_view no_part_of_it = " \t\n\v\f\r.!?";  // at its end

bool is_mark(char c) { return c == '.' || c == '!' || c == '?'; }
bool is_space(char c) { return white_space.find(c) != std::string_view::npos; }

}  // namespace

Phrase first_phrase(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(white_space), text.size()));
    Phrase phrase;
    size_t end = 0;
    for (; end < text.size() && !phrase.ended; ++end) {
        const bool mark = is_mark(text[end]) && end + 1 < text.size() && is_space(text[end + 1]);
        phrase.ended = mark || text[end] == '\n' || text[end] == '\r';
    }
    text = text.substr(0, end);
    phrase.text = text.substr(0, text.find_last_not_of(no_part_of_it) + 1);
    return phrase;
}

}  // namespace pleat
