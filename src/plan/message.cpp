#include "plan/message.h"

#include <algorithm>

namespace pleat {
namespace {

// A text of up to `whole` bytes is quoted as it is; of a longer one, `window` bytes.
constexpr size_t whole = 100;
constexpr size_t window = 80;

}  // namespace

std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (c == '\n') {
            out += "\\n";
        } else if (c == '\t') {
            out += "\\t";
        } else if (c >= ' ' && c <= '~') {
            out += c;
        } else {
            out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        }
    }
    return out;
}

Place place_at(std::string_view flag, std::string_view text, size_t offset) {
    // The grammars are ASCII and reading stops at the first byte that is not, so that up to any
    // place that is reported bytes and characters are the same.
    Place place{.flag = std::string(flag), .text = {}, .character = offset + 1};
    if (text.size() <= whole) {
        place.text = escaped(text);
        return place;
    }
    const size_t begin =
        std::min(offset > window / 2 ? offset - window / 2 : 0, text.size() - window);
    place.text = fmt::format("{}{}{}", begin > 0 ? "... " : "", escaped(text.substr(begin, window)),
                             begin + window < text.size() ? " ..." : "");
    return place;
}

std::string located(const Place& place, std::string_view item, std::string_view rule) {
    std::string out = place.flag;
    if (place.character > 0) out += fmt::format(" \"{}\"", place.text);
    if (!out.empty()) out += ": ";
    if (!item.empty()) {
        out += item;
        if (place.character > 0) out += fmt::format(" (character {})", place.character);
        out += ' ';
    }
    out += rule;
    return out;
}

std::string has_layers(const ModelShape& shape) {
    const auto count = [](int32_t n, const char* what) {
        return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
    };
    std::string out = "this model has " + count(shape.n_layer, "layer");
    if (shape.n_layer_nextn > 0) {
        out += fmt::format(" (its {} not count)", count(shape.n_layer_nextn, "MTP layer") +
                                                      (shape.n_layer_nextn == 1 ? " does" : " do"));
    }
    return out;
}

}  // namespace pleat
