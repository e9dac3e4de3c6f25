#include "plan_file/plan_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/mapped_file.h"
#include "plan_file/formats.h"

namespace pleat {
namespace {

constexpr size_t max_bytes = size_t{16} << 20;
constexpr int max_depth = 64;

/// Parsers recurse, so that depth is bounded before they see the text. Brackets in strings count
/// too where they look open; no plan comes near the limit.
void check_depth(std::string_view text, const std::string& path) {
    int brackets = 0;
    int indent = 0;  // YAML nests by spaces and dashes at the start of a line
    bool line_start = true;
    for (const char c : text) {
        if (c == '\n') {
            line_start = true;
            indent = 0;
        } else if (line_start && (c == ' ' || c == '-' || c == '?' || c == '\t')) {
            ++indent;
        } else {
            line_start = false;
        }
        if (c == '[' || c == '{') ++brackets;
        if ((c == ']' || c == '}') && brackets > 0) --brackets;
        if (brackets > max_depth || indent > 4 * max_depth) {
            fail("{}: nested more than {} levels deep, which no plan is", path, max_depth);
        }
    }
}

void check_text(std::string_view text, const std::string& path) {
    if (text.size() > max_bytes) {
        fail("{}: {} bytes are too many for a plan; at most {} are read", path, text.size(),
             max_bytes);
    }
    const auto binary = [](char c) {
        return static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\r' && c != '\t';
    };
    if (std::ranges::any_of(text, binary)) fail("{}: not a text file, so not a plan", path);
    if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
        fail("{}: the file is empty", path);
    }
    check_depth(text, path);
}

nlohmann::json parse_json(std::string_view text, const std::string& path) {
    try {
        return nlohmann::json::parse(text);
    } catch (const nlohmann::json::parse_error& error) {
        const std::string_view before = text.substr(0, error.byte > 0 ? error.byte - 1 : 0);
        const size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is the start of the text
        fail("{}: not valid JSON at line {}, column {}", path, std::ranges::count(before, '\n') + 1,
             before.size() - line_begin + 1);
    }
}

}  // namespace

PlanFile read_plan_file(const std::string& path) {
    const MappedFile file(path);
    const auto bytes = file.bytes();
    return parse_plan_file({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

PlanFile parse_plan_file(std::string_view text, const std::string& path) {
    constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
    if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
    check_text(text, path);
    const char first = text[text.find_first_not_of(" \t\r\n")];
    if (first != '{' && first != '[') return {.spec = read_mergekit(text, path), .model = {}};
    const nlohmann::json json = parse_json(text, path);
    if (json.is_array()) return {.spec = read_block_list(json, path), .model = {}};
    if (json.contains("pleat_profile")) return read_profile(json, path);
    // Every JSON is a YAML too.
    if (json.contains("slices")) return {.spec = read_mergekit(text, path), .model = {}};
    fail("{}: not a plan; a profile has the field pleat_profile, a mergekit file has slices", path);
}

}  // namespace pleat
