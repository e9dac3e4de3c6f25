#include <algorithm>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>

#include "plan/message.h"
#include "plan_file/formats.h"

namespace pleat {
namespace {

using nlohmann::json;

constexpr size_t shown = 60;

std::string name(std::string_view key) { return escaped(key.substr(0, shown)); }

/// A field that nobody reads may be one that mattered, so none is passed over.
void check_fields(const json& object, std::initializer_list<std::string_view> known,
                  const std::string& where) {
    for (const auto& [key, value] : object.items()) {
        if (std::ranges::find(known, key) != known.end()) continue;
        std::string fields;
        for (const std::string_view field : known) {
            fields.append(fields.empty() ? "" : ", ").append(field);
        }
        fail("{}: the field {} is not known; fields are {}", where, name(key), fields);
    }
}

const json& field(const json& object, const char* key, const std::string& where) {
    const auto found = object.find(key);
    if (found == object.end()) fail("{}: the field {} is missing", where, key);
    return *found;
}

int64_t count_field(const json& object, const char* key, const std::string& where) {
    const json& value = field(object, key, where);
    // An integer that does not fit becomes a float, so that this refuses it too.
    if (!value.is_number_unsigned() ||
        value.get<uint64_t>() >= uint64_t{std::numeric_limits<int64_t>::max()}) {
        fail("{}: the field {} is not a whole number >= 0", where, key);
    }
    return value.get<int64_t>();
}

std::string text_field(const json& object, const char* key, const std::string& where) {
    const json& value = field(object, key, where);
    if (!value.is_string()) fail("{}: the field {} is not a text", where, key);
    return value.get<std::string>();
}

}  // namespace

PlanFile read_profile(const json& file, const std::string& path) {
    const int64_t schema = count_field(file, "pleat_profile", path);
    if (schema != profile_schema) {
        fail("{}: the profile has schema {}, this program reads {} (field pleat_profile)", path,
             schema, profile_schema);
    }
    check_fields(file, {"pleat_profile", "plan", "model"}, path);
    PlanFile out;
    out.spec = parse_spec(text_field(file, "plan", path), path);
    const auto model = file.find("model");
    if (model == file.end()) return out;
    const std::string where = path + ", model";
    if (!model->is_object()) fail("{}: the field model is not an object", path);
    check_fields(*model, {"architecture", "n_layer", "n_embd", "n_vocab"}, where);
    out.model = ModelCheck{.architecture = name(text_field(*model, "architecture", where)),
                           .n_layer = count_field(*model, "n_layer", where),
                           .n_embd = count_field(*model, "n_embd", where),
                           .n_vocab = count_field(*model, "n_vocab", where)};
    return out;
}

Spec read_block_list(const json& file, const std::string& path) {
    Spec spec;
    if (file.empty()) fail("{}: the list of blocks is empty", path);
    for (const json& entry : file) {
        const std::string where = fmt::format("{}, entry {}", path, spec.repeat.size() + 1);
        if (!entry.is_object()) fail("{}: not an object with start, end and count", where);
        check_fields(entry, {"start", "end", "count"}, where);
        RepeatBlock block{.begin = count_field(entry, "start", where),
                          .end = count_field(entry, "end", where),
                          .traversals = count_field(entry, "count", where)};
        block.place.flag = where;
        if (block.traversals == 0) {
            fail("{}: count counts the traversals in all, so it is >= 1 (1 changes nothing)",
                 where);
        }
        spec.repeat.push_back(std::move(block));
    }
    return spec;
}

}  // namespace pleat
