#include "lab/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/mapped_file.h"
#include "plan/message.h"

namespace pleat {
namespace {

using nlohmann::ordered_json;

constexpr size_t max_bytes = size_t{256} << 20;
constexpr int max_depth = 64;
constexpr size_t shown = 60;
constexpr int64_t max_layers = 4096;

using Path = std::vector<int32_t>;

/// One configuration of a file: as a path where it is written out, else as what was done to the
/// layers, until it is known how many there are.
struct Entry {
    Path path = {};                                        ///< empty: not written out
    std::vector<std::pair<int32_t, int32_t>> blocks = {};  ///< repeated, half-open; (0,0) = none
    std::optional<std::pair<int32_t, int32_t>> pruned = {};
    std::vector<std::pair<std::string, double>> values = {};  ///< by measure
};

struct Results {
    std::vector<Entry> entries;
    size_t n_left_out = 0;  ///< cannot be said as a plan
};

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

void add_entry(Results& results, std::optional<Entry> entry, const ordered_json& object,
               const std::string& of_file, const std::string& where) {
    if (!entry) {
        ++results.n_left_out;
        return;
    }
    add_scores(*entry, object, of_file, where);
    if (!entry->values.empty()) results.entries.push_back(std::move(*entry));
}

Results read_list(std::span<const ordered_json> list, const std::string& of_file,
                  const std::string& path, const char* item) {
    Results results;
    for (size_t i = 0; i < list.size(); ++i) {
        const std::string where = fmt::format("{}, {} {}", path, item, i + 1);
        if (!list[i].is_object()) fail("{}: not an object", where);
        std::optional<Entry> entry = is_circuit_line(list[i]) ? circuit_entry(list[i], where)
                                                              : entry_of_fields(list[i], where);
        if (!entry && !is_circuit_line(list[i])) {
            fail("{}: no field names the layers (config_layers, layers, key, spec, dup_start, ...)",
                 where);
        }
        add_entry(results, std::move(entry), list[i], of_file, where);
    }
    return results;
}

/// RYS's dictionary: {"(0, 1, 2)": 0.5} or {"26,34": {"score": 0.5, ...}}.
Results read_dictionary(const ordered_json& object, const std::string& of_file,
                        const std::string& path) {
    Results results;
    for (const auto& [key, value] : object.items()) {
        const std::string where = fmt::format("{}, {}", path, cut(key));
        if (!value.is_object() && !value.is_number())
            fail("{}: neither a score nor an object", where);
        std::optional<Entry> entry;
        if (value.is_object()) entry = entry_of_fields(value, where);
        if (!entry) entry = entry_of_spec(key, where);
        add_entry(results, std::move(entry),
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

/// JSON Lines, which must be told from a JSON whose first line is whole.
std::vector<ordered_json> parse_lines(std::string_view text, const std::string& path) {
    std::vector<ordered_json> lines;
    for (size_t number = 1; !text.empty(); ++number) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
        ordered_json value = ordered_json::parse(line, nullptr, false);
        if (value.is_discarded()) fail("{}: line {} is not valid JSON", path, number);
        lines.push_back(std::move(value));
    }
    return lines;
}

Results read_text(std::string_view text, const std::string& path) {
    constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
    if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
    check_text(text, path);
    const std::string of_file = measure_of_file(path);
    const ordered_json whole = ordered_json::parse(text, nullptr, false);
    if (whole.is_array()) {
        return read_list(whole.get_ref<const ordered_json::array_t&>(), of_file, path, "entry");
    }
    if (whole.is_object() && !is_circuit_line(whole) && !whole.contains("config_layers")) {
        return read_dictionary(whole, of_file, path);
    }
    const std::vector<ordered_json> lines = parse_lines(text, path);
    if (lines.empty()) fail("{}: the file is empty", path);
    return read_list(lines, of_file, path, "line");
}

Path identity_path(int32_t n_layer) {
    Path path(static_cast<size_t>(n_layer));
    for (int32_t i = 0; i < n_layer; ++i) path[static_cast<size_t>(i)] = i;
    return path;
}

/// RYS's rule: a block's layers go behind the last visit to its last layer. False where it cannot.
bool insert_block(Path& path, int32_t begin, int32_t end) {
    if (begin == 0 && end == 0) return true;
    const auto last = std::find(path.rbegin(), path.rend(), end - 1);
    if (begin >= end || last == path.rend()) return false;
    Path block;
    for (int32_t layer = begin; layer < end; ++layer) block.push_back(layer);
    path.insert(last.base(), block.begin(), block.end());
    return true;
}

std::optional<Path> path_of(const Entry& entry, int32_t n_layer) {
    const auto inside = [&](int32_t layer) { return layer < n_layer; };
    if (!entry.path.empty()) {
        if (!std::ranges::all_of(entry.path, inside)) return std::nullopt;
        return entry.path;
    }
    Path path = identity_path(n_layer);
    if (entry.pruned) {
        const auto [begin, end] = *entry.pruned;
        if (begin >= end || end > n_layer) return std::nullopt;
        std::erase_if(path, [&](int32_t layer) { return layer >= begin && layer < end; });
        if (path.empty()) return std::nullopt;
        return path;
    }
    for (const auto& [begin, end] : entry.blocks) {
        if (!insert_block(path, begin, end)) return std::nullopt;
    }
    return path;
}

/// As LayerPlan::canonical() writes it: runs that ascend by one as ranges.
std::string canonical(const Path& path) {
    std::string text;
    for (size_t i = 0; i < path.size();) {
        size_t end = i + 1;
        while (end < path.size() && path[end] == path[end - 1] + 1) ++end;
        text += fmt::format("{}{}", text.empty() ? "" : ",", path[i]);
        if (end - i > 1) text += fmt::format("..{}", path[end - 1]);
        i = end;
    }
    return text;
}

/// The block (i, j) of a path 0..j-1, i..N-1, however it was written.
std::optional<std::pair<int32_t, int32_t>> single_block(const Path& path, int32_t n_layer) {
    const auto seam =
        std::ranges::adjacent_find(path, [](int32_t a, int32_t b) { return b != a + 1; });
    if (seam == path.end()) return std::nullopt;
    const std::pair block(*(seam + 1), *seam + 1);
    Path expected = identity_path(n_layer);
    if (block.first >= block.second || block.second > n_layer ||
        !insert_block(expected, block.first, block.second) || expected != path) {
        return std::nullopt;
    }
    return block;
}

std::string flag_of(const Entry& entry, const Path& path,
                    std::optional<std::pair<int32_t, int32_t>> block) {
    if (block) return fmt::format("--repeat-layers \"{},{}\"", block->first, block->second);
    if (entry.pruned) {
        const auto [begin, end] = *entry.pruned;
        return end - begin == 1 ? fmt::format("--skip-layers \"{}\"", begin)
                                : fmt::format("--skip-layers \"{}..{}\"", begin, end - 1);
    }
    if (entry.blocks.size() > 1) {
        std::string blocks;
        for (const auto& [begin, end] : entry.blocks) {
            blocks += fmt::format("{}{},{}", blocks.empty() ? "" : ";", begin, end);
        }
        return fmt::format("--repeat-layers \"{}\"", blocks);
    }
    return fmt::format("--layers \"{}\"", canonical(path));
}

int32_t layers_of(const Results& results, const std::string& path) {
    int32_t n_layer = 0;
    for (const Entry& entry : results.entries) {
        for (const int32_t layer : entry.path) n_layer = std::max(n_layer, layer + 1);
    }
    if (n_layer == 0) {
        fail("{}: no path is written out, so the number of layers is not known; say it", path);
    }
    return n_layer;
}

/// A report of the entries, in their order; a plan that comes again adds to its row.
ReportData report_of(const Results& results, int32_t n_layer, const std::string& title) {
    ReportData data{.title = title, .model = fmt::format("{} layers", n_layer), .n_layer = n_layer};
    std::map<std::string, size_t> measures;
    std::map<std::string, size_t> rows;
    const std::string identity = canonical(identity_path(n_layer));
    size_t n_left_out = results.n_left_out;
    for (const Entry& entry : results.entries) {
        const std::optional<Path> path = path_of(entry, n_layer);
        if (!path) {
            ++n_left_out;
            continue;
        }
        const std::string plan = canonical(*path);
        if (plan != identity && !rows.contains(plan)) {
            const auto block = single_block(*path, n_layer);
            const double ratio = static_cast<double>(path->size()) / static_cast<double>(n_layer);
            ReportRow row{.flag = flag_of(entry, *path, block),
                          .canonical = plan,
                          .compute_ratio = ratio,
                          .read_ratio = ratio,
                          .kv_ratio = ratio};
            if (block) {
                row.begin = block->first;
                row.end = block->second;
            }
            rows.emplace(plan, data.rows.size());
            data.rows.push_back(std::move(row));
        }
        for (const auto& [name, value] : entry.values) {
            const auto [measure, is_new] = measures.emplace(name, data.measures.size());
            if (is_new) {
                data.measures.push_back({.measure = {.name = name, .higher_is_better = true}});
            }
            // Its error was not kept by those who measured it.
            const Score score{.value = value, .error = std::numeric_limits<double>::quiet_NaN()};
            if (plan == identity) {
                data.measures[measure->second].identity.selection = score;
                continue;
            }
            ReportRow& row = data.rows[rows.at(plan)];
            row.scores.resize(std::max(row.scores.size(), measure->second + 1));
            row.scores[measure->second].selection = score;
        }
    }
    for (ReportRow& row : data.rows) row.scores.resize(data.measures.size());
    data.n_plans_tried = data.rows.size();
    data.notes.emplace_back(
        "Imported: without standard errors, and costs are passes relative to the model's layers.");
    if (n_left_out > 0) {
        data.notes.push_back(
            fmt::format("{} entries cannot be said as a plan and are left out.", n_left_out));
    }
    return data;
}

}  // namespace

ReportData import_text(std::string_view text, const std::string& path,
                       std::optional<int32_t> n_layer) {
    const Results results = read_text(text, path);
    return report_of(results, n_layer ? *n_layer : layers_of(results, path),
                     std::filesystem::path(path).filename().string());
}

ReportData import_results(const std::vector<std::string>& paths, std::optional<int32_t> n_layer) {
    Results all;
    std::string title;
    for (const std::string& path : paths) {
        const MappedFile file(path);
        const auto bytes = file.bytes();
        Results results =
            read_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
        all.n_left_out += results.n_left_out;
        std::ranges::move(results.entries, std::back_inserter(all.entries));
        title += (title.empty() ? "" : ", ") + std::filesystem::path(path).filename().string();
    }
    if (paths.empty()) fail("no result file was named");
    return report_of(all, n_layer ? *n_layer : layers_of(all, paths.front()), title);
}

}  // namespace pleat
