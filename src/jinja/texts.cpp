#include "jinja/texts.h"

#include <fmt/format.h>

#include <algorithm>

#include "jinja/unicode.h"
#include "jinja/values.h"

namespace pleat::jinja {

std::string stripped(std::string_view text, bool left, bool right) {
    if (left) text.remove_prefix(leading_space(text));
    if (right) text.remove_suffix(trailing_space(text));
    return std::string(text);
}

std::string stripped(std::string_view text, std::string_view set, bool left, bool right) {
    const std::u32string of = characters(set);
    const std::u32string all = characters(text);
    size_t begin = 0;
    size_t end = all.size();
    while (left && begin < end && of.find(all[begin]) != std::u32string::npos) ++begin;
    while (right && end > begin && of.find(all[end - 1]) != std::u32string::npos) --end;
    return utf8(std::u32string_view(all).substr(begin, end - begin));
}

std::vector<std::string> split(std::string_view text, std::string_view separator, int64_t limit) {
    std::vector<std::string> parts;
    for (size_t at = 0; limit != 0 && (at = text.find(separator)) != std::string_view::npos;
         --limit) {
        parts.emplace_back(text.substr(0, at));
        text.remove_prefix(at + separator.size());
    }
    parts.emplace_back(text);
    return parts;
}

std::vector<std::string> split_right(std::string_view text, std::string_view separator,
                                     int64_t limit) {
    std::vector<std::string> parts;
    for (size_t at = 0; limit != 0 && (at = text.rfind(separator)) != std::string_view::npos;
         --limit) {
        parts.emplace_back(text.substr(at + separator.size()));
        text = text.substr(0, at);
    }
    parts.emplace_back(text);
    std::ranges::reverse(parts);
    return parts;
}

std::vector<std::string> words(std::string_view text, int64_t limit) {
    std::vector<std::string> parts;
    for (;; --limit) {
        text.remove_prefix(leading_space(text));
        if (text.empty()) return parts;
        if (limit == 0) {
            text.remove_suffix(trailing_space(text));
            parts.emplace_back(text);
            return parts;
        }
        size_t end = 0;
        while (end < text.size() && leading_space(text.substr(end)) == 0) ++end;
        parts.emplace_back(text.substr(0, end));
        text.remove_prefix(end);
    }
}

std::vector<std::string> lines(std::string_view text, bool keep_ends) {
    std::vector<std::string> parts;
    while (!text.empty()) {
        const size_t at = std::min(text.find_first_of("\n\r\v\f"), text.size());
        size_t end = std::min(at + 1, text.size());
        if (text.substr(at).starts_with("\r\n")) end = at + 2;
        parts.emplace_back(text.substr(0, keep_ends ? end : at));
        text.remove_prefix(end);
    }
    return parts;
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to,
                     int64_t limit) {
    std::string result;
    if (from.empty()) {
        // Between all characters, and at both ends.
        for (const char32_t c : characters(text)) {
            if (limit != 0) result += to;
            if (limit != 0) --limit;
            append_utf8(result, c);
            check_size(result);
        }
        if (limit != 0) result += to;
        return result;
    }
    for (size_t at = 0; limit != 0 && (at = text.find(from)) != std::string_view::npos; --limit) {
        result.append(text.substr(0, at)).append(to);
        check_size(result);
        text.remove_prefix(at + from.size());
    }
    return result.append(text);
}

std::string capitalized(std::string_view text) {
    std::u32string all = characters(text);
    for (size_t i = 0; i < all.size(); ++i) all[i] = i == 0 ? to_upper(all[i]) : to_lower(all[i]);
    return utf8(all);
}

std::string titled(std::string_view text) {
    std::u32string all = characters(text);
    bool inside = false;
    for (char32_t& c : all) {
        const bool letter = to_upper(c) != to_lower(c);
        c = inside ? to_lower(c) : to_upper(c);
        inside = letter;
    }
    return utf8(all);
}

std::string indented(std::string_view text, std::string_view by, bool first, bool blank) {
    std::string result(first ? by : "");
    for (bool is_first = true;; is_first = false) {
        const size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        if (!is_first && (blank || !line.empty())) result += by;
        check_size(result);
        result += line;
        if (end == text.size()) return result;
        result += '\n';
        text.remove_prefix(end + 1);
    }
}

size_t width_of(int64_t width) {
    constexpr int64_t most = 10'000;
    if (width > most) throw Abort{fmt::format("a width of more than {} characters", most)};
    return static_cast<size_t>(std::max<int64_t>(width, 0));
}

std::string html_escaped(std::string_view text) {
    std::string result;
    for (const char c : text) {
        switch (c) {
            case '&':
                result += "&amp;";
                break;
            case '<':
                result += "&lt;";
                break;
            case '>':
                result += "&gt;";
                break;
            case '"':
                result += "&#34;";
                break;
            case '\'':
                result += "&#39;";
                break;
            default:
                result += c;
        }
    }
    return result;
}

}  // namespace pleat::jinja
