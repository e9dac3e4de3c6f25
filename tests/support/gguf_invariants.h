#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "gguf/header.h"

namespace pleat {

/// Reads the header of a file of any bytes at all. True when it was accepted; then everything the
/// reader promises is checked again, another way, and std::logic_error thrown where it does not
/// hold. A refusal has to be an Error of one line that names the file.
inline bool accepts_header(std::span<const std::byte> bytes) {
    constexpr std::string_view name = "any.gguf";
    const auto require = [](bool holds, const char* what) {
        if (!holds) throw std::logic_error(what);
    };
    gguf::Header header;
    try {
        header = gguf::parse_header(name, bytes);
    } catch (const Error& e) {
        const std::string_view message = e.what();
        require(message.substr(0, name.size()) == name, "the message does not begin with the file");
        require(std::all_of(message.begin(), message.end(),
                            [](char c) { return c >= 0x20 && c < 0x7f; }),
                "the message is not one line of printable text");
        return false;
    }
    require(header.alignment != 0, "alignment 0");
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    for (const gguf::TensorInfo& t : header.tensors) {
        require(t.offset % header.alignment == 0, "data is not aligned");
        require(t.offset <= bytes.size() && t.bytes <= bytes.size() - t.offset, "data is outside");
        require(
            ggml_row_size(t.type, t.ne[0]) * static_cast<uint64_t>(t.ne[1] * t.ne[2] * t.ne[3]) ==
                t.bytes,
            "ggml finds another size");
        ranges.emplace_back(t.offset, t.offset + t.bytes);
    }
    std::sort(ranges.begin(), ranges.end());
    for (size_t i = 1; i < ranges.size(); ++i) {
        require(ranges[i - 1].second <= ranges[i].first, "tensors overlap");
    }
    return true;
}

}  // namespace pleat
