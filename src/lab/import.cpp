#include "lab/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <variant>

#include "base/error.h"
#include "base/mapped_file.h"
#include "lab/import_entries.h"

namespace pleat {
namespace {

ImportedPath identity_path(int32_t n_layer) {
    ImportedPath path(static_cast<size_t>(n_layer));
    for (int32_t i = 0; i < n_layer; ++i) path[static_cast<size_t>(i)] = i;
    return path;
}

/// RYS's rule: a block's layers go behind the last visit to its last layer. False where it cannot.
bool insert_block(ImportedPath& path, int32_t begin, int32_t end) {
    if (begin == 0 && end == 0) return true;
    const auto last = std::find(path.rbegin(), path.rend(), end - 1);
    if (begin >= end || last == path.rend()) return false;
    ImportedPath block;
    for (int32_t layer = begin; layer < end; ++layer) block.push_back(layer);
    path.insert(last.base(), block.begin(), block.end());
    return true;
}

std::optional<ImportedPath> path_of(const ImportedEntry& entry, int32_t n_layer) {
    if (!entry.path.empty()) {
        ImportedPath path;
        for (const int32_t layer : entry.path) {
            const int32_t begin = layer < 0 ? -1 - layer : layer;
            if (begin >= n_layer) return std::nullopt;
            const int32_t end = layer < 0 ? n_layer : begin + 1;
            for (int32_t each = begin; each < end; ++each) path.push_back(each);
        }
        return path;
    }
    ImportedPath path = identity_path(n_layer);
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
std::string canonical(const ImportedPath& path) {
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
std::optional<std::pair<int32_t, int32_t>> single_block(const ImportedPath& path, int32_t n_layer) {
    const auto seam =
        std::ranges::adjacent_find(path, [](int32_t a, int32_t b) { return b != a + 1; });
    if (seam == path.end()) return std::nullopt;
    const std::pair block(*(seam + 1), *seam + 1);
    ImportedPath expected = identity_path(n_layer);
    if (block.first >= block.second || block.second > n_layer ||
        !insert_block(expected, block.first, block.second) || expected != path) {
        return std::nullopt;
    }
    return block;
}

std::string flag_of(const ImportedEntry& entry, const ImportedPath& path,
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

/// Of the longest path that is written out; 0 where none is.
int32_t layers_of(const ImportedEntries& imported) {
    int32_t n_layer = 0;
    for (const ImportedEntry& entry : imported.entries) {
        for (const int32_t layer : entry.path) n_layer = std::max(n_layer, layer + 1);
    }
    return n_layer;
}

/// All values of a measure, the identity plan's among them.
std::vector<double*> values_of(ReportData& data, size_t measure) {
    std::vector<double*> values;
    const auto add = [&](ReportScore& score) {
        if (score.selection) values.push_back(&score.selection->value);
    };
    add(data.measures[measure].identity);
    for (ReportRow& row : data.rows) add(row.scores[measure]);
    return values;
}

/// With linear interpolation; there is at least one value.
double percentile(std::vector<double> values, double part) {
    std::ranges::sort(values);
    const double at = part * static_cast<double>(values.size() - 1);
    const auto below = static_cast<size_t>(at);
    const size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (at - std::floor(at)) * (values[above] - values[below]);
}

/// Some programs give EQ from 0 to 100, all else is from 0 to 1. RYS's rule tells them apart.
void to_one_scale(ReportData& data) {
    constexpr double most = 1.5;
    for (size_t m = 0; m < data.measures.size(); ++m) {
        ReportMeasure& measure = data.measures[m];
        const std::vector<double*> values = values_of(data, m);
        if (values.empty()) continue;
        std::vector<double> plain;
        for (const double* const value : values) plain.push_back(*value);
        const auto& identity = measure.identity.selection;
        if (is_about(measure.measure, "eq") &&
            ((identity && identity->value > most) || percentile(plain, 0.95) > most)) {
            for (double* const value : values) *value /= 100;
            data.notes.push_back(fmt::format("{} is from 0 to 100 there and was divided by 100",
                                             measure.measure.name));
        }
        const auto is_share = [](const double* value) { return *value >= 0 && *value <= 1; };
        if (std::ranges::all_of(values, is_share)) measure.unit = "0 to 1";
    }
}

ReportRow row_of(const ImportedEntry& entry, const ImportedPath& path, int32_t n_layer) {
    const auto block = single_block(path, n_layer);
    const double ratio = static_cast<double>(path.size()) / static_cast<double>(n_layer);
    ReportRow row{.flag = flag_of(entry, path, block),
                  .canonical = canonical(path),
                  .compute_ratio = ratio,
                  .read_ratio = ratio,
                  .kv_ratio = ratio,
                  .in_balanced = !entry.pruned};
    if (block) {
        row.begin = block->first;
        row.end = block->second;
    }
    return row;
}

/// The place of a measure; a new one where there is none of the name.
size_t measure_named(ReportData& data, const std::string& name) {
    for (size_t m = 0; m < data.measures.size(); ++m) {
        if (data.measures[m].measure.name == name) return m;
    }
    data.measures.push_back({.measure = {.name = name, .higher_is_better = true}});
    return data.measures.size() - 1;
}

std::string left_out_note(const std::map<std::string, size_t>& left_out) {
    std::string text;
    for (const auto& [reason, n] : left_out) {
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", n, reason);
    }
    return "left out, since no plan says them: " + text;
}

/// The entries of one file, in their order; a plan that comes again adds to its row.
ReportData report_of(ImportedEntries imported, int32_t n_layer) {
    ReportData data{.title = "", .model = fmt::format("{} layers", n_layer), .n_layer = n_layer};
    data.notes = std::move(imported.notes);
    std::map<std::string, size_t> rows;
    const std::string identity = canonical(identity_path(n_layer));
    size_t n_again = 0;
    for (const ImportedEntry& entry : imported.entries) {
        const std::optional<ImportedPath> path = path_of(entry, n_layer);
        if (!path) {
            ++imported.left_out[fmt::format("of blocks that {} layers do not have", n_layer)];
            continue;
        }
        const std::string plan = canonical(*path);
        if (plan != identity && rows.emplace(plan, data.rows.size()).second) {
            data.rows.push_back(row_of(entry, *path, n_layer));
        }
        for (const auto& [name, value] : entry.values) {
            const size_t m = measure_named(data, name);
            std::vector<ReportScore>* const scores =
                plan == identity ? nullptr : &data.rows[rows.at(plan)].scores;
            if (scores != nullptr) scores->resize(std::max(scores->size(), m + 1));
            ReportScore& score = scores == nullptr ? data.measures[m].identity : scores->at(m);
            if (score.selection && score.selection->value != value) ++n_again;
            // Its error was not kept by those who measured it.
            score.selection =
                Score{.value = value, .error = std::numeric_limits<double>::quiet_NaN()};
        }
    }
    for (ReportRow& row : data.rows) row.scores.resize(data.measures.size());
    to_one_scale(data);
    if (!imported.left_out.empty()) data.notes.push_back(left_out_note(imported.left_out));
    if (n_again > 0) {
        data.notes.push_back(
            fmt::format("{} values of plans that come again differ; the last one counts", n_again));
    }
    data.notes.emplace_back(
        "imported: without standard errors, and costs are passes relative to the model's layers");
    return data;
}

struct Source {
    std::string label;  ///< the path without what all have in common
    ReportData data;
    bool own = false;  ///< a report of Pleat: its costs are known
};

/// Paths without the folders that all of them have in common.
std::vector<std::string> labels_of(std::span<const std::string> paths) {
    std::vector<std::vector<std::string>> parts;
    for (const std::string& path : paths) {
        std::vector<std::string>& own = parts.emplace_back();
        for (const auto& part : std::filesystem::path(path)) own.push_back(part.string());
    }
    size_t n_common = 0;
    const auto is_common = [&](const std::vector<std::string>& own) {
        return own.size() > n_common + 1 && own[n_common] == parts.front()[n_common];
    };
    while (std::ranges::all_of(parts, is_common)) ++n_common;
    std::vector<std::string> labels;
    for (const std::vector<std::string>& own : parts) {
        std::filesystem::path label;
        for (size_t i = n_common; i < own.size(); ++i) label /= own[i];
        labels.push_back(label.string());
    }
    return labels;
}

/// By plan ("" is the identity), what is finite.
std::map<std::string, double> finite_values(const ReportData& data, size_t measure) {
    std::map<std::string, double> values;
    const auto add = [&](const std::string& plan, const ReportScore& score) {
        if (score.selection && std::isfinite(score.selection->value)) {
            values.emplace(plan, score.selection->value);
        }
    };
    add("", data.measures[measure].identity);
    for (const ReportRow& row : data.rows) add(row.canonical, row.scores[measure]);
    return values;
}

/// Measures of one name are one measure unless they say different things of a plan.
bool agree(const Source& a, size_t of_a, const Source& b, size_t of_b) {
    const ReportMeasure& first = a.data.measures[of_a];
    const ReportMeasure& second = b.data.measures[of_b];
    if (first.measure != second.measure || a.own != b.own) return false;
    const auto known = finite_values(a.data, of_a);
    for (const auto& [plan, value] : finite_values(b.data, of_b)) {
        const auto it = known.find(plan);
        if (it != known.end() && it->second != value) return false;
    }
    return true;
}

/// A measure of several files: which have it, where, and whether they agree.
struct SharedMeasure {
    std::vector<std::pair<size_t, size_t>> places;  ///< source, measure
    bool one = true;
};

std::map<std::string, SharedMeasure> shared_measures(const std::vector<Source>& sources) {
    std::map<std::string, SharedMeasure> shared;
    for (size_t s = 0; s < sources.size(); ++s) {
        for (size_t m = 0; m < sources[s].data.measures.size(); ++m) {
            SharedMeasure& it = shared[sources[s].data.measures[m].measure.name];
            for (const auto& [other, measure] : it.places) {
                it.one = it.one && agree(sources[other], measure, sources[s], m);
            }
            it.places.emplace_back(s, m);
        }
    }
    return shared;
}

std::string sharing_note(const std::string& name, const SharedMeasure& it,
                         const std::vector<Source>& sources) {
    std::string files;
    for (const auto& [source, measure] : it.places) {
        files += (files.empty() ? "" : ", ") + sources[source].label;
    }
    return it.one
               ? fmt::format("{} is one measure of {}, which agree where they overlap", name, files)
               : fmt::format("{} differs between {}, so each has its own", name, files);
}

/// Adds what a source knows of a plan to the row of all.
void add_row(ReportData& all, std::map<std::string, size_t>& rows, const ReportRow& row, bool own,
             std::span<const size_t> columns) {
    const auto [place, is_new] = rows.emplace(row.canonical, all.rows.size());
    if (is_new) {
        all.rows.push_back(row);
        all.rows.back().scores.assign(all.measures.size(), {});
    }
    ReportRow& to = all.rows[place->second];
    if (own) {
        to.compute_ratio = row.compute_ratio;
        to.read_ratio = row.read_ratio;
        to.kv_ratio = row.kv_ratio;
    }
    to.in_balanced = to.in_balanced && row.in_balanced;
    if (to.set_aside.empty()) to.set_aside = row.set_aside;
    for (size_t m = 0; m < columns.size(); ++m) {
        if (!to.scores[columns[m]].selection) to.scores[columns[m]] = row.scores[m];
    }
}

void add_texts(ReportData& all, const Source& source) {
    for (const auto& [name, value] : source.data.settings) {
        all.settings.emplace_back(fmt::format("{}: {}", source.label, name), value);
    }
    for (const std::string& note : source.data.notes) {
        all.notes.push_back(fmt::format("{}: {}", source.label, note));
    }
}

ReportData merged(const std::vector<Source>& sources, int32_t n_layer) {
    ReportData all{.title = "", .model = fmt::format("{} layers", n_layer), .n_layer = n_layer};
    const auto shared = shared_measures(sources);
    std::map<std::string, size_t> rows;
    std::vector<std::vector<size_t>> columns;  // by source, then measure
    std::set<std::string> noted;
    for (const Source& source : sources) {
        std::vector<size_t>& own = columns.emplace_back();
        for (const ReportMeasure& measure : source.data.measures) {
            const SharedMeasure& it = shared.at(measure.measure.name);
            if (it.places.size() > 1 && noted.insert(measure.measure.name).second) {
                all.notes.push_back(sharing_note(measure.measure.name, it, sources));
            }
            ReportMeasure named = measure;
            if (!it.one) named.measure.name += fmt::format(" ({})", source.label);
            const size_t m = measure_named(all, named.measure.name);
            own.push_back(m);
            if (!all.measures[m].identity.selection) all.measures[m] = named;
        }
    }
    for (size_t s = 0; s < sources.size(); ++s) {
        const Source& source = sources[s];
        for (const ReportRow& row : source.data.rows) {
            add_row(all, rows, row, source.own, columns[s]);
        }
        if (source.own) {
            all.model = source.data.model;
            all.confidence = source.data.confidence;
        }
        add_texts(all, source);
    }
    all.n_plans_tried = all.rows.size();
    return all;
}

using Imported = std::variant<ImportedEntries, ReportData>;

/// As said, else of a report, else of the longest path.
int32_t layers_of(std::span<const Imported> files, std::span<const std::string> paths,
                  std::optional<int32_t> said) {
    int32_t longest = 0;
    for (size_t i = 0; i < files.size(); ++i) {
        if (const auto* const entries = std::get_if<ImportedEntries>(&files[i])) {
            longest = std::max(longest, layers_of(*entries));
            continue;
        }
        const int32_t own = std::get<ReportData>(files[i]).n_layer;
        if (said && *said != own) {
            fail("{}: of a model of {} layers, and not of {}", paths[i], own, *said);
        }
        said = own;
    }
    if (!said && longest == 0) {
        fail("{}: no path is written out, so the number of layers is not known; say it",
             paths.front());
    }
    return said.value_or(longest);
}

ReportData report_of(std::vector<Imported> files, std::span<const std::string> paths,
                     std::optional<int32_t> said) {
    const int32_t n_layer = layers_of(files, paths, said);
    const std::vector<std::string> labels = labels_of(paths);
    std::vector<Source> sources;
    std::string title;
    for (size_t i = 0; i < files.size(); ++i) {
        title += (title.empty() ? "" : ", ") + labels[i];
        if (auto* const own = std::get_if<ReportData>(&files[i])) {
            sources.push_back({.label = labels[i], .data = std::move(*own), .own = true});
        } else {
            sources.push_back(
                {.label = labels[i],
                 .data = report_of(std::get<ImportedEntries>(std::move(files[i])), n_layer)});
        }
    }
    ReportData data =
        sources.size() == 1 ? std::move(sources.front().data) : merged(sources, n_layer);
    data.title = title;
    return data;
}

}  // namespace

ReportData import_text(std::string_view text, const std::string& path,
                       std::optional<int32_t> n_layer) {
    return report_of({read_import(text, path)}, std::span(&path, 1), n_layer);
}

ReportData import_results(const std::vector<std::string>& paths, std::optional<int32_t> n_layer) {
    if (paths.empty()) fail("no result file was named");
    std::vector<Imported> files;
    for (const std::string& path : paths) {
        const MappedFile file(path);
        const auto bytes = file.bytes();
        files.push_back(
            read_import({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path));
    }
    return report_of(std::move(files), paths, n_layer);
}

}  // namespace pleat
