#include "schema/unfold.h"

#include <algorithm>

namespace pleat {

using nlohmann::ordered_json;

namespace {

void check_depth(const ordered_json& value, int depth) {
    if (depth <= 0) fail("schema: is nested too deeply");
    if (!value.is_structured()) return;
    for (const ordered_json& inner : value) check_depth(inner, depth - 1);
}

/// Percent escapes of a URI's fragment.
std::string percent_decoded(std::string_view text) {
    std::string result;
    for (size_t i = 0; i < text.size(); ++i) {
        const auto digit = [&](size_t at) {
            const char c = at < text.size() ? text[at] : 'x';
            if (c >= '0' && c <= '9') return c - '0';
            const int low = c | 0x20;
            return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
        };
        if (text[i] == '%' && digit(i + 1) >= 0 && digit(i + 2) >= 0) {
            result += static_cast<char>(digit(i + 1) * 16 + digit(i + 2));
            i += 2;
        } else {
            result += text[i];
        }
    }
    return result;
}

bool contains(const std::vector<const ordered_json*>& list, const ordered_json* one) {
    return std::ranges::find(list, one) != list.end();
}

}  // namespace

Unfolder::Unfolder(const ordered_json& root, const SchemaLimits& limits)
    : root_(root), limits_(limits) {
    check_depth(root, limits.depth);
    size_t bytes = 0;
    try {
        bytes = root.dump().size();
    } catch (const ordered_json::exception&) {
        fail("schema: holds text that is not valid UTF-8");
    }
    if (bytes > limits.bytes) fail("schema: {} bytes, at most {}", bytes, limits.bytes);
}

void Unfolder::step(const SchemaPart& at, size_t n) {
    steps_ += n;
    if (steps_ > limits_.steps) {
        fail_at(at, "references and choices unfold to more than {} schemas", limits_.steps);
    }
}

SchemaPart Unfolder::resolve(const SchemaPart& reference) const {
    if (!reference.json->is_string()) fail_at(reference, "expected a string");
    const auto& text = reference.json->get_ref<const std::string&>();
    if (!text.starts_with('#')) {
        fail_at(reference, "{} leads out of this schema; only #/... is supported", excerpt(text));
    }
    SchemaPart target = root();
    const std::string path = percent_decoded(std::string_view(text).substr(1));
    if (!path.empty() && path.front() != '/') {
        fail_at(reference, "{} names an anchor, which is not supported", excerpt(text));
    }
    for (size_t pos = 0; pos < path.size();) {
        const size_t end = std::min(path.find('/', pos + 1), path.size());
        std::string token = path.substr(pos + 1, end - pos - 1);
        pos = end;
        for (size_t i = token.find('~'); i != std::string::npos; i = token.find('~', i + 1)) {
            if (token.compare(i, 2, "~1") == 0) {
                token.replace(i, 2, "/");
            } else if (token.compare(i, 2, "~0") == 0) {
                token.replace(i, 2, "~");
            }
        }
        const bool index = target.json->is_array() && !token.empty() && token.size() < 10 &&
                           std::ranges::all_of(token, [](char c) { return c >= '0' && c <= '9'; });
        if (index && std::stoul(token) < target.json->size()) {
            target = target.at(std::stoul(token));
        } else if (target.json->is_object() && target.json->contains(token)) {
            target = target.at(token);
        } else {
            fail_at(reference, "{} leads nowhere", excerpt(text));
        }
    }
    return target;
}

void Unfolder::visit(State& state, const SchemaPart& schema) {
    step(schema);
    if (schema.json->is_boolean()) {
        state.impossible = state.impossible || *schema.json == false;
        return;
    }
    if (!schema.json->is_object()) fail_at(schema, "expected a schema: an object, true or false");
    if (contains(state.path, schema.json)) fail_at(schema, "refers to itself without an end");
    if (state.path.size() >= static_cast<size_t>(limits_.depth)) {
        fail_at(schema, "more than {} references lead to each other", limits_.depth);
    }
    const bool known = std::ranges::any_of(
        state.plain, [&](const SchemaPart& part) { return part.json == schema.json; });
    if (known) return;
    state.plain.push_back(schema);
    state.path.push_back(schema.json);
    if (schema.json->contains("$ref")) visit(state, resolve(schema.at("$ref")));
    for (const char* keyword : {"allOf", "anyOf", "oneOf"}) {
        if (!schema.json->contains(keyword)) continue;
        const SchemaPart parts = schema.at(keyword);
        if (!parts.json->is_array() || parts.json->empty()) {
            fail_at(parts, "expected a non-empty array of schemas");
        }
        if (parts.pointer.ends_with("allOf")) {
            for (size_t i = 0; i < parts.json->size(); ++i) visit(state, parts.at(i));
        } else {
            state.choices.push_back({schema, keyword, state.path});
        }
    }
    state.path.pop_back();
}

std::vector<Constraints> Unfolder::alternatives(const std::vector<SchemaPart>& schemas) {
    State state;
    for (const SchemaPart& schema : schemas) visit(state, schema);
    return expand(std::move(state), 0);
}

std::vector<Constraints> Unfolder::expand(State state, int depth) {
    if (state.impossible) return {};
    if (!state.choices.empty()) {
        const Choice choice = state.choices.front();
        state.choices.erase(state.choices.begin());
        if (depth >= limits_.depth) {
            fail_at(choice.owner, "more than {} choices lead to each other", limits_.depth);
        }
        return expand_choice(state, choice, depth);
    }
    Constraints joined = join(state.plain, limits_);
    if (joined.types == 0) return {};
    if (joined.values) {
        Constraints rest = joined;
        rest.values.reset();
        std::erase_if(*joined.values,
                      [&](const ordered_json* value) { return !allows(rest, *value); });
        if (joined.values->empty()) return {};
    }
    std::vector<Constraints> result;
    result.push_back(std::move(joined));
    return result;
}

/// OpenAPI: the property that tells the alternatives apart is always there, so its tag is.
void Unfolder::take_tag(State& state, const Choice& choice) {
    if (!choice.owner.json->contains("discriminator")) return;
    const SchemaPart keyword = choice.owner.at("discriminator");
    if (!keyword.json->is_object() || !keyword.json->contains("propertyName") ||
        !keyword.json->at("propertyName").is_string()) {
        fail_at(keyword, "expected an object with a propertyName");
    }
    ordered_json required;
    required["required"] = {keyword.json->at("propertyName")};
    const auto known = std::ranges::find(made_, required);
    const ordered_json& made = known != made_.end() ? *known : made_.emplace_back(required);
    state.plain.push_back({&made, keyword.pointer});
}

std::vector<Constraints> Unfolder::expand_choice(const State& state, const Choice& choice,
                                                 int depth) {
    const SchemaPart parts = choice.owner.at(choice.keyword);
    std::vector<std::vector<Constraints>> branches;
    for (size_t i = 0; i < parts.json->size(); ++i) {
        step(parts, state.plain.size() + state.choices.size());
        State branch = state;
        take_tag(branch, choice);
        branch.path = choice.path;
        visit(branch, parts.at(i));
        branches.push_back(expand(std::move(branch), depth + 1));
    }
    if (choice.keyword == "oneOf") check_exclusive(choice, branches);
    std::vector<Constraints> result;
    for (std::vector<Constraints>& branch : branches) {
        std::ranges::move(branch, std::back_inserter(result));
    }
    return result;
}

void Unfolder::check_exclusive(const Choice& choice,
                               const std::vector<std::vector<Constraints>>& branches) {
    const auto apart = [&](const std::vector<Constraints>& a, const std::vector<Constraints>& b) {
        return std::ranges::all_of(a, [&](const Constraints& one) {
            return std::ranges::all_of(
                b, [&](const Constraints& other) { return excludes(one, other, 3); });
        });
    };
    for (size_t i = 0; i < branches.size(); ++i) {
        for (size_t k = 0; k < branches.size(); ++k) {
            if (i == k || apart(branches[i], branches[k])) continue;
            fail_at(choice.owner.at("oneOf"),
                    "alternatives {} and {} may both hold; write anyOf, or give objects a required "
                    "property with different constants",
                    std::min(i, k), std::max(i, k));
        }
    }
}

}  // namespace pleat
