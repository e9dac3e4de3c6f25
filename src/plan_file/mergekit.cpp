#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <limits>

#include "plan/message.h"
#include "plan_file/formats.h"

namespace pleat {
namespace {

constexpr size_t shown = 60;

std::string text_of(const YAML::Node& node) {
    return node.IsScalar() ? escaped(node.Scalar().substr(0, shown)) : "(not a text)";
}

/// Keys that change what is computed must be read or refused; the harmless ones are listed.
void check_keys(const YAML::Node& map, std::initializer_list<std::string_view> known,
                const std::string& where) {
    if (!map.IsMap()) fail("{}: not a mapping", where);
    for (const auto& entry : map) {
        const std::string key = text_of(entry.first);
        if (std::ranges::find(known, key) != known.end()) continue;
        fail("{}: the key {} cannot be expressed as a plan", where, key);
    }
}

int64_t layer_number(const YAML::Node& node, const std::string& where) {
    const std::string text = node.IsScalar() ? node.Scalar() : std::string();
    int64_t value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || text[0] == '-' || code != std::errc() || end != text.data() + text.size()) {
        fail("{}: layer_range holds {}, which is not the number of a layer", where, text_of(node));
    }
    return value;
}

LayerItem read_range(const YAML::Node& range, const std::string& where) {
    if (!range.IsSequence() || range.size() != 2) {
        fail("{}: layer_range is not a pair [begin, end]", where);
    }
    const int64_t begin = layer_number(range[0], where);
    const int64_t end = layer_number(range[1], where);
    if (begin >= end) {
        fail("{}: layer_range [{}, {}] is empty; it is half-open, so begin < end", where, begin,
             end);
    }
    LayerItem item{.first = begin, .last = end - 1};
    item.place.flag = where;
    return item;
}

/// The text of the model that a source names; an adapter would be another model's weights.
std::string read_model(const YAML::Node& source, const std::string& where) {
    const YAML::Node model = source["model"];
    if (!model || !model.IsScalar()) fail("{}: the source names no model", where);
    if (model.Scalar().find('+') != std::string::npos) {
        fail("{}: the model {} has a LoRA, which cannot be expressed as a plan", where,
             text_of(model));
    }
    return model.Scalar();
}

Spec read_slices(const YAML::Node& file, const std::string& path) {
    check_keys(file,
               {"slices", "merge_method", "base_model", "dtype", "out_dtype", "tokenizer_source",
                "chat_template", "name"},
               path);
    const YAML::Node method = file["merge_method"];
    if (!method) fail("{}: merge_method is missing; only passthrough is a plan", path);
    if (!method.IsScalar() || method.Scalar() != "passthrough") {
        fail("{}: merge_method is {}; only passthrough is a plan", path, text_of(method));
    }
    const YAML::Node slices = file["slices"];
    if (!slices || !slices.IsSequence() || slices.size() == 0) {
        fail("{}: slices is not a list of at least one slice", path);
    }
    std::vector<LayerItem> layers;
    std::string model;
    for (const YAML::Node& slice : slices) {
        const std::string where = fmt::format("{}, slice {}", path, layers.size() + 1);
        check_keys(slice, {"sources"}, where);
        const YAML::Node sources = slice["sources"];
        if (!sources || !sources.IsSequence() || sources.size() != 1) {
            fail("{}: sources is not a list of exactly one source", where);
        }
        check_keys(sources[0], {"model", "layer_range"}, where);
        const std::string name = read_model(sources[0], where);
        if (layers.empty()) model = name;
        if (name != model) {
            fail("{}: the model {} is another than {} before; a plan has one model", where,
                 escaped(name.substr(0, shown)), escaped(model.substr(0, shown)));
        }
        const YAML::Node range = sources[0]["layer_range"];
        if (!range) fail("{}: layer_range is missing", where);
        layers.push_back(read_range(range, where));
    }
    return Spec{.layers = std::move(layers)};
}

}  // namespace

Spec read_mergekit(std::string_view text, const std::string& path) {
    try {
        const YAML::Node file = YAML::Load(std::string(text));
        if (!file.IsMap()) {
            fail("{}: not a plan; expected a Pleat profile, a list of blocks or a mergekit file",
                 path);
        }
        return read_slices(file, path);
    } catch (const YAML::Exception& error) {
        fail("{}: not valid YAML at line {}, column {}: {}", path, error.mark.line + 1,
             error.mark.column + 1, escaped(error.msg).substr(0, 2 * shown));
    }
}

}  // namespace pleat
