#include "lab/json.h"

#include <cmath>

namespace pleat {

using nlohmann::ordered_json;

std::string dump_json(const ordered_json& json, int indent) {
    return json.dump(indent, ' ', false, ordered_json::error_handler_t::replace);
}

void add_finite(ordered_json& object, const char* name, std::optional<double> number) {
    if (number && std::isfinite(*number)) object[name] = *number;
}

ordered_json score_json(const Score& score) {
    ordered_json json = ordered_json::object();
    add_finite(json, "value", score.value);
    add_finite(json, "error", score.error);
    return json;
}

ordered_json difference_json(const Difference& difference) {
    ordered_json json = ordered_json::object();
    add_finite(json, "value", difference.value);
    add_finite(json, "low", difference.low);
    add_finite(json, "high", difference.high);
    return json;
}

ordered_json data_source_json(const DataSource& source) {
    return {{"name", source.name}, {"sha256", source.sha256}, {"n_items", source.n_items}};
}

ordered_json fingerprint_json(const Fingerprint& it) {
    ordered_json json = {{"architecture", it.architecture}, {"n_layer", it.n_layer}};
    const auto number = [&](const char* name, std::optional<int64_t> value) {
        if (value) json[name] = *value;
    };
    const auto text = [&](const char* name, const std::string& value) {
        if (!value.empty()) json[name] = value;
    };
    number("n_layer_nextn", it.n_layer_nextn);
    number("n_embd", it.n_embd);
    number("n_vocab", it.n_vocab);
    text("tokenizer_sha256", it.tokenizer_sha256);
    text("tensor_types", it.tensor_types);
    text("tensor_types_sha256", it.tensor_types_sha256);
    text("content_sha256", it.content_sha256);
    text("file_type", it.file_type);
    text("name", it.name);
    return json;
}

}  // namespace pleat
