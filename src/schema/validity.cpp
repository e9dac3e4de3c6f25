#include <algorithm>

#include "schema/unfold.h"

namespace pleat {

using nlohmann::ordered_json;

bool Unfolder::allows(const std::vector<SchemaPart>& schemas, const ordered_json& value) {
    return std::ranges::any_of(alternatives(schemas), [&](const Constraints& alternative) {
        return allows(alternative, value);
    });
}

bool Unfolder::allows(const Constraints& alternative, const ordered_json& value) {
    step(alternative.place);
    if ((alternative.types & json_type::of(value)) == 0) return false;
    if (alternative.values) {
        step(alternative.place, alternative.values->size());
        const std::string wanted = canonical(value);
        const bool listed = std::ranges::any_of(*alternative.values, [&](const ordered_json* one) {
            return canonical(*one) == wanted;
        });
        if (!listed) return false;
    }
    if (value.is_number()) return alternative.numbers.contains(decimal_of(value));
    if (value.is_string()) {
        const std::u32string text = utf32(value.get_ref<const std::string&>());
        if (text.size() < alternative.length.least ||
            text.size() > alternative.length.most.value_or(text.size())) {
            return false;
        }
        return std::ranges::all_of(alternative.patterns, [&](const Constraints::Pattern& pattern) {
            step(pattern.schema, text.size() + 1);
            return matches(pattern.regex, text);
        });
    }
    if (value.is_array()) return allows_array(alternative, value);
    return !value.is_object() || allows_object(alternative, value);
}

bool Unfolder::allows_array(const Constraints& alternative, const ordered_json& value) {
    if (value.size() < alternative.n_items.least ||
        value.size() > alternative.n_items.most.value_or(value.size())) {
        return false;
    }
    for (size_t i = 0; i < value.size(); ++i) {
        if (!allows(alternative.item(i), value[i])) return false;
    }
    return true;
}

bool Unfolder::allows_object(const Constraints& alternative, const ordered_json& value) {
    if (value.size() < alternative.n_properties.least ||
        value.size() > alternative.n_properties.most.value_or(value.size())) {
        return false;
    }
    for (const std::string& name : alternative.required) {
        if (!value.contains(name)) return false;
    }
    for (const auto& [name, inner] : value.items()) {
        if (!allows(alternative.property(name), inner)) return false;
        if (!allows(alternative.names, ordered_json(name))) return false;
    }
    return true;
}

bool Unfolder::excludes(const Constraints& written, const Constraints& other, int depth) {
    step(written.place);
    if (written.values) {
        return std::ranges::none_of(
            *written.values, [&](const ordered_json* value) { return allows(other, *value); });
    }
    if (other.values) {
        return std::ranges::none_of(
            *other.values, [&](const ordered_json* value) { return allows(written, *value); });
    }
    const auto types = static_cast<uint8_t>(written.types & other.types);
    if ((types & (json_type::null | json_type::boolean)) != 0) return false;
    const auto apart = [](const LengthRange& a, const LengthRange& b) {
        return (a.most && *a.most < b.least) || (b.most && *b.most < a.least);
    };
    if ((types & json_type::number) != 0 && !written.numbers.apart_from(other.numbers)) {
        return false;
    }
    if ((types & json_type::string) != 0 && !apart(written.length, other.length)) return false;
    if ((types & json_type::array) != 0 && !apart(written.n_items, other.n_items)) return false;
    return (types & json_type::object) == 0 || excludes_objects(written, other, depth);
}

bool Unfolder::excludes_objects(const Constraints& written, const Constraints& other, int depth) {
    if (depth == 0) return false;
    const auto tells = [&](const std::string& name) {
        return excludes_property(written, other, name, depth);
    };
    return std::ranges::any_of(written.required, tells) ||
           std::ranges::any_of(other.required, tells);
}

bool Unfolder::excludes_property(const Constraints& written, const Constraints& other,
                                 const std::string& name, int depth) {
    const auto lists_nothing = [](const ObjectPart& part) {
        return part.properties == nullptr && part.patterned.empty();
    };
    // Names that are not listed are written only where a schema asks for others.
    const auto names = written.property_names();
    const bool closed = std::ranges::none_of(written.objects, [&](const ObjectPart& part) {
        return part.additional != nullptr || !part.patterned.empty() || lists_nothing(part);
    });
    const bool open = written.objects.empty() && written.required.empty();
    const bool can_be_written = written.requires_property(name) || open || !closed ||
                                std::ranges::find(names, name) != names.end();
    if (!can_be_written) return other.requires_property(name);
    if (!written.requires_property(name) && !other.requires_property(name)) return false;
    const std::vector<Constraints> here = alternatives(written.property(name));
    const std::vector<Constraints> there = alternatives(other.property(name));
    return std::ranges::all_of(here, [&](const Constraints& one) {
        return std::ranges::all_of(
            there, [&](const Constraints& another) { return excludes(one, another, depth - 1); });
    });
}

}  // namespace pleat
