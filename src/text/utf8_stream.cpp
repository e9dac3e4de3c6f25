#include "text/utf8_stream.h"

#include <cstddef>

namespace pleat {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

enum class Sequence { valid, invalid, incomplete };

struct Step {
    Sequence kind;
    size_t size;  ///< of the sequence, or of its longest part that could have become one
};

/// Table 3-7 of the Unicode standard: only the second byte's range depends on the first.
Step next_sequence(std::string_view s) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
    const unsigned first = byte(0);
    if (first < 0x80) return {Sequence::valid, 1};
    size_t size = 0;
    if (first >= 0xC2 && first <= 0xDF) size = 2;
    if (first >= 0xE0 && first <= 0xEF) size = 3;
    if (first >= 0xF0 && first <= 0xF4) size = 4;
    if (size == 0) return {Sequence::invalid, 1};
    for (size_t i = 1; i < size; ++i) {
        if (i == s.size()) return {Sequence::incomplete, i};
        unsigned low = 0x80;
        unsigned high = 0xBF;
        if (i == 1) {
            if (first == 0xE0) low = 0xA0;
            if (first == 0xED) high = 0x9F;
            if (first == 0xF0) low = 0x90;
            if (first == 0xF4) high = 0x8F;
        }
        if (byte(i) < low || byte(i) > high) return {Sequence::invalid, i};
    }
    return {Sequence::valid, size};
}

}  // namespace

std::string Utf8Stream::feed(std::string_view bytes) {
    pending_ += bytes;
    std::string out;
    std::string_view rest = pending_;
    while (!rest.empty()) {
        const Step step = next_sequence(rest);
        if (step.kind == Sequence::incomplete) break;
        out += step.kind == Sequence::valid ? rest.substr(0, step.size) : replacement;
        rest.remove_prefix(step.size);
    }
    pending_.erase(0, pending_.size() - rest.size());
    return out;
}

std::string Utf8Stream::flush() {
    if (pending_.empty()) return {};
    pending_.clear();
    return std::string(replacement);
}

std::string to_utf8(std::string_view bytes) {
    Utf8Stream stream;
    std::string out = stream.feed(bytes);
    return out + stream.flush();
}

bool is_utf8(std::string_view bytes) {
    while (!bytes.empty()) {
        const Step step = next_sequence(bytes);
        if (step.kind != Sequence::valid) return false;
        bytes.remove_prefix(step.size);
    }
    return true;
}

}  // namespace pleat
