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

/// A field that nobody reads may be one that mattered, so none is passed over but those that say
/// so themselves: "x-...".
void check_fields(const json& object, std::initializer_list<std::string_view> known,
                  const std::string& where) {
    for (const auto& [key, value] : object.items()) {
        if (std::ranges::find(known, key) != known.end() || key.starts_with("x-")) continue;
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

/// What a profile tells about its numbers decides nothing here, so only the outline is held
/// against the schema.
void check_sections(const json& profile, const std::string& path) {
    for (const char* const list : {"measures", "data", "curve", "similarity", "notes"}) {
        const auto found = profile.find(list);
        if (found != profile.end() && !found->is_array()) {
            fail("{}: the field {} is not a list", path, list);
        }
    }
    for (const char* const object : {"settings", "provenance", "source"}) {
        const auto found = profile.find(object);
        if (found != profile.end() && !found->is_object()) {
            fail("{}: the field {} is not an object", path, object);
        }
    }
    if (profile.contains("n_plans_tried")) count_field(profile, "n_plans_tried", path);
}

Fingerprint read_fingerprint(const json& model, const std::string& where) {
    check_fields(
        model,
        {"architecture", "n_layer", "n_layer_nextn", "n_embd", "n_vocab", "tokenizer_sha256",
         "tensor_types", "tensor_types_sha256", "content_sha256", "file_type", "name"},
        where);
    const auto count = [&](const char* key) -> std::optional<int64_t> {
        if (!model.contains(key)) return std::nullopt;
        return count_field(model, key, where);
    };
    const auto text = [&](const char* key) {
        return model.contains(key) ? name(text_field(model, key, where)) : std::string();
    };
    const auto hash = [&](const char* key) {
        const std::string value = model.contains(key) ? text_field(model, key, where) : "";
        const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
        if (model.contains(key) && (value.size() != 64 || !std::ranges::all_of(value, is_hex))) {
            fail("{}: the field {} is not 64 hex digits in lower case", where, key);
        }
        return value;
    };
    return {.architecture = name(text_field(model, "architecture", where)),
            .n_layer = count_field(model, "n_layer", where),
            .n_layer_nextn = count("n_layer_nextn"),
            .n_embd = count("n_embd"),
            .n_vocab = count("n_vocab"),
            .tokenizer_sha256 = hash("tokenizer_sha256"),
            .tensor_types = text("tensor_types"),
            .tensor_types_sha256 = hash("tensor_types_sha256"),
            .content_sha256 = hash("content_sha256"),
            .file_type = text("file_type"),
            .name = text("name")};
}

}  // namespace

PlanFile read_profile(const json& file, const std::string& path) {
    const int64_t schema = count_field(file, "pleat_profile", path);
    if (schema != profile_schema) {
        fail("{}: the profile has schema {}, this program reads {} (field pleat_profile)", path,
             schema, profile_schema);
    }
    check_fields(file,
                 {"pleat_profile", "plan", "model", "measures", "data", "n_plans_tried", "curve",
                  "similarity", "settings", "provenance", "source", "notes", "extra"},
                 path);
    check_sections(file, path);
    PlanFile out;
    out.spec = parse_spec(text_field(file, "plan", path), path);
    const auto model = file.find("model");
    if (model == file.end()) return out;
    if (!model->is_object()) fail("{}: the field model is not an object", path);
    out.model = read_fingerprint(*model, path + ", model");
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
