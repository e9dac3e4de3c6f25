#include "schema/charset.h"

#include <algorithm>
#include <string_view>

namespace pleat {
namespace {

constexpr char32_t last_character = 0x10FFFF;

}  // namespace

CharSet::CharSet(std::initializer_list<std::pair<char32_t, char32_t>> ranges) {
    for (const auto& [first, last] : ranges) add(first, last);
}

CharSet CharSet::all() { return {{0, 0xD7FF}, {0xE000, last_character}}; }

void CharSet::add(char32_t first, char32_t last) {
    ranges_.emplace_back(first, last);
    std::ranges::sort(ranges_);
    std::vector<std::pair<char32_t, char32_t>> joined;
    for (const auto& range : ranges_) {
        if (!joined.empty() && range.first <= joined.back().second + 1) {
            joined.back().second = std::max(joined.back().second, range.second);
        } else {
            joined.push_back(range);
        }
    }
    ranges_ = std::move(joined);
}

void CharSet::add(const CharSet& other) {
    for (const auto& [first, last] : other.ranges_) add(first, last);
}

CharSet CharSet::complement() const { return all().without(*this); }

CharSet CharSet::without(const CharSet& other) const {
    CharSet result;
    for (auto [first, last] : ranges_) {
        for (const auto& [low, high] : other.ranges_) {
            if (high < first || low > last) continue;
            if (low > first) result.add(first, low - 1);
            first = high + 1;
            if (first > last) break;
        }
        if (first <= last) result.add(first, last);
    }
    return result;
}

bool CharSet::contains(char32_t c) const {
    return std::ranges::any_of(
        ranges_, [&](const auto& range) { return range.first <= c && c <= range.second; });
}

bool CharSet::single() const {
    return ranges_.size() == 1 && ranges_.front().first == ranges_.front().second;
}

std::u32string utf32(std::string_view text) {
    std::u32string result;
    for (size_t i = 0; i < text.size();) {
        const auto lead = static_cast<unsigned char>(text[i++]);
        char32_t c = lead;
        int more = 0;
        if (lead >= 0xF0) {
            c = lead & 0x07U;
            more = 3;
        } else if (lead >= 0xE0) {
            c = lead & 0x0FU;
            more = 2;
        } else if (lead >= 0xC0) {
            c = lead & 0x1FU;
            more = 1;
        }
        for (; more > 0 && i < text.size(); --more) {
            c = c << 6U | (static_cast<unsigned char>(text[i++]) & 0x3FU);
        }
        result += c;
    }
    return result;
}

std::string utf8(char32_t c) {
    std::string result;
    const auto byte = [&](char32_t bits) { result += static_cast<char>(bits); };
    if (c < 0x80) {
        byte(c);
    } else if (c < 0x800) {
        byte(0xC0 | c >> 6);
        byte(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        byte(0xE0 | c >> 12);
        byte(0x80 | (c >> 6 & 0x3F));
        byte(0x80 | (c & 0x3F));
    } else {
        byte(0xF0 | c >> 18);
        byte(0x80 | (c >> 12 & 0x3F));
        byte(0x80 | (c >> 6 & 0x3F));
        byte(0x80 | (c & 0x3F));
    }
    return result;
}

}  // namespace pleat
