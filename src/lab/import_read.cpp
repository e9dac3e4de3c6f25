#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>

#include "base/error.h"
#include "lab/import_entries.h"
#include "lab/import_report.h"
#include "lab/report.h"
#include "plan/message.h"

namespace pleat {
namespace {

using nlohmann::ordered_json;
using Entry = ImportedEntry;
using Path = ImportedPath;

constexpr size_t max_bytes = size_t{256} << 20;
constexpr int max_depth = 64;
constexpr size_t shown = 60;
constexpr int64_t max_layers = 4096;
constexpr size_t max_path = size_t{16} * max_layers;  ///< of ranges, which are short to write

std::string cut(std::string_view text) { return escaped(text.substr(0, shown)); }

int32_t layer_number(const ordered_json& value, const std::string& where) {
    if (!value.is_number_integer() || value.get<int64_t>() < 0 ||
        value.get<int64_t>() >= max_layers) {
        fail("{}: {} is not the number of a layer", where, cut(value.dump()));
    }
    return value.get<int32_t>();
}

/// The numbers of "(0, 1, 2)", "26,34", "layers:0,1,2"; nothing when it is no such list.
std::optional<Path> numbers_in(std::string_view text) {
    Path numbers;
    bool open = false;  // within a number
    for (const char c : text) {
        if (c >= '0' && c <= '9') {
            if (!open) numbers.push_back(0);
            open = true;
            if (numbers.back() >= max_layers) return std::nullopt;
            numbers.back() = numbers.back() * 10 + (c - '0');
        } else {
            open = false;
            if (std::string_view("(), []").find(c) == std::string_view::npos) return std::nullopt;
        }
    }
    if (numbers.empty()) return std::nullopt;
    return numbers;
}

std::optional<int32_t> layer_in(std::string_view text) {
    const std::optional<Path> numbers = numbers_in(text);
    if (!numbers || numbers->size() != 1) return std::nullopt;
    return numbers->front();
}

/// Adds "0..5", "5..3", "..5" (from layer 0), "3.." (to the last layer) or "7"; both ends count.
bool add_range(Path& path, std::string_view text) {
    const size_t dots = text.find("..");
    if (dots == std::string_view::npos) {
        const std::optional<int32_t> layer = layer_in(text);
        if (layer) path.push_back(*layer);
        return layer.has_value();
    }
    constexpr std::string_view spaces = " ([";
    const bool from_first = text.substr(0, dots).find_first_not_of(spaces) == std::string::npos;
    const auto begin = from_first ? std::optional(0) : layer_in(text.substr(0, dots));
    if (!begin) return false;
    if (text.find_first_not_of(" )]", dots + 2) == std::string_view::npos) {
        path.push_back(-1 - *begin);
        return !from_first;
    }
    const std::optional<int32_t> end = layer_in(text.substr(dots + 2));
    if (!end) return false;
    const int32_t step = *begin <= *end ? 1 : -1;
    for (int32_t layer = *begin; layer != *end; layer += step) path.push_back(layer);
    path.push_back(*end);
    return path.size() <= max_path;
}

/// "0..5,3..15" of EXL3 and llm-circuit-finder.
std::optional<Path> ranges_in(std::string_view text) {
    Path path;
    while (!text.empty()) {
        const std::string_view part = text.substr(0, text.find(','));
        text.remove_prefix(std::min(text.size(), part.size() + 1));
        if (!add_range(path, part)) return std::nullopt;
    }
    return path;
}

/// RYS's keys: a path, or a pair (i, j) which always means a block.
Entry entry_of_numbers(const Path& numbers, bool is_path) {
    if (!is_path && numbers.size() == 2) return {.blocks = {{numbers[0], numbers[1]}}};
    return {.path = numbers};
}

Entry entry_of_spec(std::string_view spec, const std::string& where) {
    constexpr std::string_view layers = "layers:";
    constexpr std::string_view blocks = "blocks:";
    const bool is_path = spec.starts_with(layers);
    if (is_path) spec.remove_prefix(layers.size());
    if (spec.starts_with(blocks)) spec.remove_prefix(blocks.size());
    if (spec.find("..") != std::string_view::npos) {
        const std::optional<Path> path = ranges_in(spec);
        if (!path) fail("{}: {} is no plan of ranges of layers", where, cut(spec));
        return {.path = *path};
    }
    if (spec.find(';') == std::string_view::npos) {
        const std::optional<Path> numbers = numbers_in(spec);
        if (!numbers) fail("{}: {} is no plan of RYS", where, cut(spec));
        return entry_of_numbers(*numbers, is_path);
    }
    Entry entry;
    while (!spec.empty()) {
        const std::string_view block = spec.substr(0, spec.find(';'));
        spec.remove_prefix(std::min(spec.size(), block.size() + 1));
        const std::optional<Path> pair = numbers_in(block);
        if (!pair || pair->size() != 2) fail("{}: {} is no block i,j", where, cut(block));
        entry.blocks.emplace_back((*pair)[0], (*pair)[1]);
    }
    return entry;
}

/// The configuration that an object of RYS names in one of its fields.
std::optional<Entry> entry_of_fields(const ordered_json& object, const std::string& where) {
    for (const char* const key :
         {"config_layers", "layers", "layer_indices", "config_key", "key"}) {
        if (!object.contains(key) || !object[key].is_array()) continue;
        Path numbers;
        for (const ordered_json& value : object[key]) {
            numbers.push_back(layer_number(value, where));
        }
        const bool is_path = std::string_view(key).find("key") == std::string_view::npos;
        return entry_of_numbers(numbers, is_path);
    }
    for (const char* const key : {"config_spec", "spec", "config_key", "key"}) {
        if (object.contains(key) && object[key].is_string()) {
            return entry_of_spec(object[key].get<std::string>(), where);
        }
    }
    return std::nullopt;
}

void add_value(Entry& entry, const std::string& measure, const ordered_json& value,
               const std::string& where) {
    if (value.is_null()) return;
    if (!value.is_number()) fail("{}: the score {} is no number", where, measure);
    const double number = value.get<double>();
    if (std::isfinite(number)) entry.values.emplace_back(measure, number);
}

/// "math_score" is a score named "math", "score" one named after the file. Combined scores are
/// means of others, in whatever way: Pleat makes its own.
void add_scores(Entry& entry, const ordered_json& object, const std::string& of_file,
                const std::string& where) {
    constexpr std::string_view suffix = "_score";
    for (const auto& [key, value] : object.items()) {
        if (key == "score") {
            add_value(entry, of_file, value, where);
        } else if (key.ends_with(suffix) && key != "combined_score" && key != "method_score") {
            add_value(entry, key.substr(0, key.size() - suffix.size()), value, where);
        }
    }
}

/// What llm-circuit-finder did to the layers; nothing for what no plan says for certain.
std::optional<Entry> circuit_entry(const ordered_json& line, const std::string& where) {
    const auto pair = [&](const char* first, const char* second) {
        if (!line.contains(second)) fail("{}: the field {} is missing", where, second);
        return std::pair(layer_number(line.at(first), where), layer_number(line.at(second), where));
    };
    const auto duplicated = [&](std::pair<int32_t, int32_t> block) {
        if (line.contains("n_dup_layers") &&
            line["n_dup_layers"] != ordered_json(block.second - block.first)) {
            fail("{}: {} layers are not those from {} to before {}", where,
                 cut(line["n_dup_layers"].dump()), block.first, block.second);
        }
        return Entry{.blocks = {block}};
    };
    if (line.value("is_baseline", ordered_json(false)) == ordered_json(true)) {
        return Entry{.blocks = {{0, 0}}};
    }
    if (line.contains("dup_start")) return duplicated(pair("dup_start", "dup_end"));
    if (line.contains("prune_start")) return Entry{.pruned = pair("prune_start", "prune_end")};
    if (!line.contains("mode")) return std::nullopt;
    if (line["mode"] == "dup") return duplicated(pair("start", "end"));
    if (line["mode"] == "prune") return Entry{.pruned = pair("start", "end")};
    return std::nullopt;
}

bool is_circuit_line(const ordered_json& line) {
    return line.is_object() && (line.contains("is_baseline") || line.contains("dup_start") ||
                                line.contains("prune_start") || line.contains("mode"));
}

void add_entry(ImportedEntries& results, Entry entry, const ordered_json& object,
               const std::string& of_file, const std::string& where) {
    add_scores(entry, object, of_file, where);
    if (!entry.values.empty()) results.entries.push_back(std::move(entry));
}

std::string mode_of(const ordered_json& line) {
    if (!line.contains("mode")) return "without layers";
    const ordered_json& mode = line["mode"];
    return "of mode " + cut(mode.is_string() ? mode.get<std::string>() : mode.dump());
}

/// `where_is` says where the file has the i-th object.
template <typename Where>
ImportedEntries read_list(std::span<const ordered_json> list, const std::string& of_file,
                          const Where& where_is) {
    ImportedEntries results;
    for (size_t i = 0; i < list.size(); ++i) {
        const std::string where = where_is(i);
        if (!list[i].is_object()) fail("{}: not an object", where);
        const bool is_circuit = is_circuit_line(list[i]);
        std::optional<Entry> entry =
            is_circuit ? circuit_entry(list[i], where) : entry_of_fields(list[i], where);
        if (!entry && !is_circuit) {
            fail("{}: no field names the layers (config_layers, layers, key, spec, dup_start, ...)",
                 where);
        }
        if (entry) {
            add_entry(results, std::move(*entry), list[i], of_file, where);
        } else {
            ++results.left_out[mode_of(list[i])];
        }
    }
    return results;
}

/// RYS's dictionary: {"(0, 1, 2)": 0.5} or {"26,34": {"score": 0.5, ...}}.
ImportedEntries read_dictionary(const ordered_json& object, const std::string& of_file,
                                const std::string& path) {
    ImportedEntries results;
    for (const auto& [key, value] : object.items()) {
        const std::string where = fmt::format("{}, {}", path, cut(key));
        if (value.is_null()) continue;
        if (!value.is_object() && !value.is_number()) {
            fail("{}: neither a score nor an object", where);
        }
        std::optional<Entry> entry;
        if (value.is_object()) entry = entry_of_fields(value, where);
        if (!entry) entry = entry_of_spec(key, where);
        add_entry(results, std::move(*entry),
                  value.is_object() ? value : ordered_json{{"score", value}}, of_file, where);
    }
    return results;
}

/// "math_results.json" holds scores named "math".
std::string measure_of_file(const std::string& path) {
    std::string name = std::filesystem::path(path).stem().string();
    for (const std::string_view tail : {"_results", "_scores", "-results", "-scores"}) {
        if (name.size() > tail.size() && name.ends_with(tail)) {
            name.resize(name.size() - tail.size());
        }
    }
    return cut(name);
}

void check_text(std::string_view text, const std::string& path) {
    if (text.size() > max_bytes) {
        fail("{}: {} bytes are too many for results; at most {} are read", path, text.size(),
             max_bytes);
    }
    // Protocol 2 and later begin with 0x80, protocols 0 and 1 with a mark or a dictionary.
    const std::string_view begin = text.substr(0, 2);
    if (begin.starts_with('\x80') || begin == "(d" || begin == "}q" || begin == "(l" ||
        path.ends_with(".pkl") || path.ends_with(".pickle")) {
        fail(
            "{}: a pickle, which is never read: to read one is to run the code in it; dump the "
            "dictionary as JSON, with its keys as texts",
            path);
    }
    int depth = 0;
    for (const char c : text) {
        if (c == '[' || c == '{') ++depth;
        if ((c == ']' || c == '}') && depth > 0) --depth;
        if (depth > max_depth) fail("{}: nested more than {} levels deep", path, max_depth);
    }
}

/// Python writes numbers that JSON has no word for; they become null, which is no score.
size_t remove_not_finite(std::string& text) {
    size_t n = 0;
    bool in_string = false;
    std::string out;
    for (size_t i = 0; i < text.size();) {
        if (in_string && text[i] == '\\' && i + 1 < text.size()) {
            out.append(text, i, 2);
            i += 2;
            continue;
        }
        if (text[i] == '"') in_string = !in_string;
        size_t length = 0;
        for (const std::string_view word : {"NaN", "Infinity", "-Infinity"}) {
            if (!in_string && text.compare(i, word.size(), word) == 0) length = word.size();
        }
        if (length == 0) {
            out += text[i++];
            continue;
        }
        out += "null";
        i += length;
        ++n;
    }
    text = std::move(out);
    return n;
}

struct Lines {
    std::vector<ordered_json> values;
    std::vector<size_t> numbers;  ///< of the values' lines in the file
    bool cut_off = false;         ///< the last line, which is not among the values
};

/// JSON Lines. A last line that is none was being written when its writer ended.
Lines parse_lines(std::string_view text, const std::string& path) {
    constexpr std::string_view white_space = " \t\r\n";
    Lines lines;
    for (size_t number = 1; !text.empty(); ++number) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        if (line.find_first_not_of(white_space) == std::string_view::npos) continue;
        ordered_json value = ordered_json::parse(line, nullptr, false);
        if (!value.is_discarded()) {
            lines.values.push_back(std::move(value));
            lines.numbers.push_back(number);
            continue;
        }
        lines.cut_off =
            text.find_first_not_of(white_space) == std::string_view::npos && !lines.values.empty();
        if (!lines.cut_off) fail("{}: line {} is not valid JSON", path, number);
    }
    return lines;
}

/// Where a text of several lines that is meant to be one JSON value goes wrong.
[[noreturn]] void fail_at_error(std::string_view text, const std::string& path) {
    size_t at = text.size();
    try {
        const ordered_json unused = ordered_json::parse(text);
    } catch (const ordered_json::parse_error& error) {
        at = std::min(error.byte, text.size());
    }
    fail("{}: line {} is not valid JSON", path,
         1 + std::ranges::count(text.substr(0, at > 0 ? at - 1 : 0), '\n'));
}

bool first_line_is_json(std::string_view text) {
    text.remove_prefix(std::min(text.size(), text.find_first_not_of(" \t\r\n")));
    return ordered_json::accept(text.substr(0, text.find('\n')));
}

ImportedEntries read_lines(std::string_view text, const std::string& of_file,
                           const std::string& path) {
    if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
        fail("{}: the file is empty", path);
    }
    if (!first_line_is_json(text)) fail_at_error(text, path);
    const Lines lines = parse_lines(text, path);
    ImportedEntries results = read_list(lines.values, of_file, [&](size_t i) {
        return fmt::format("{}, line {}", path, lines.numbers[i]);
    });
    if (lines.cut_off) results.notes.emplace_back("the last line is cut off and left out");
    return results;
}

ImportedEntries read_entries(const ordered_json& whole, std::string_view text,
                             const std::string& path) {
    const std::string of_file = measure_of_file(path);
    if (whole.is_array()) {
        return read_list(whole.get_ref<const ordered_json::array_t&>(), of_file,
                         [&](size_t i) { return fmt::format("{}, entry {}", path, i + 1); });
    }
    if (whole.is_object() && !is_circuit_line(whole) && !whole.contains("config_layers")) {
        return read_dictionary(whole, of_file, path);
    }
    return read_lines(text, of_file, path);
}

}  // namespace

std::variant<ImportedEntries, ReportData> read_import(std::string_view file,
                                                      const std::string& path) {
    constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
    if (file.starts_with(byte_order_mark)) file.remove_prefix(byte_order_mark.size());
    check_text(file, path);
    std::string text(file);
    const size_t n_not_finite = remove_not_finite(text);
    const ordered_json whole = ordered_json::parse(text, nullptr, false);
    if (whole.is_object() && whole.contains("pleat_report")) return parse_report(whole, path);
    if (text.starts_with("{\"pleat_journal\"")) {
        fail("{}: a journal of Pleat; import the report of its scan (--report-json)", path);
    }
    ImportedEntries results = read_entries(whole, text, path);
    if (n_not_finite > 0) {
        results.notes.push_back(fmt::format(
            "{} values that are no numbers (NaN, Infinity) are left out", n_not_finite));
    }
    return results;
}

}  // namespace pleat
