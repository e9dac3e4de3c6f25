#include <algorithm>
#include <map>
#include <set>

#include "schema/json_rules.h"
#include "schema/translator.h"

namespace pleat {

using nlohmann::ordered_json;

namespace {

/// The characters that a key has without escapes.
CharSet plain_characters() { return CharSet{{0, 0x1F}, {'"', '"'}, {'\\', '\\'}}.complement(); }

bool is_plain(std::u32string_view text) {
    const CharSet plain = plain_characters();
    return std::ranges::all_of(text, [&](char32_t c) { return plain.contains(c); });
}

}  // namespace

std::string SchemaTranslator::object_body(const Constraints& object, Needs& needs) {
    const std::vector<Pair> pairs = listed_pairs(object, needs);
    const Others rest = others(object, pairs);
    const bool required =
        std::ranges::any_of(pairs, [](const Pair& pair) { return pair.required; });
    if (rest.least > 0) needs.push_back({rest.rule});
    const std::string content = pairs_text(pairs, rest);
    const bool some = required || rest.least > 0 || object.n_properties.least > 0;
    if (some && content.empty())
        fail_at(object.place, "no object can have its number of properties");
    return some ? bracketed(grammar_, "{}", content) : bracketed_or_empty(grammar_, "{}", content);
}

std::vector<SchemaTranslator::Pair> SchemaTranslator::listed_pairs(const Constraints& object,
                                                                   Needs& needs) {
    std::vector<std::string> names = object.property_names();
    std::set<std::string> known(names.begin(), names.end());
    for (const std::string& name : object.required) {
        if (known.insert(name).second) names.push_back(name);
    }
    if (names.size() > limits_.nodes) {
        fail_at(object.place, "more than {} properties", limits_.nodes);
    }
    std::vector<Pair> pairs;
    size_t n_optional = 0;
    for (const std::string& name : names) {
        const bool required = object.requires_property(name);
        const bool may = unfolder_.allows(object.names, ordered_json(name));
        const auto value = may ? rule_for(object.property(name), name) : std::nullopt;
        if (!value) {
            if (required)
                fail_at(object.place, "the required property {} allows no value", excerpt(name));
            continue;
        }
        if (required) needs.push_back({*value});
        pairs.push_back(
            {keyed(grammar_, GrammarText::literal(json_string(name)), *value), required});
        if (!required && ++n_optional > limits_.optional_properties) {
            fail_at(object.place, "more than {} optional properties", limits_.optional_properties);
        }
        if (!required) pairs.back().rule = grammar_.add(name + "-pair", pairs.back().rule);
    }
    return pairs;
}

SchemaTranslator::Others SchemaTranslator::others(const Constraints& object,
                                                  const std::vector<Pair>& pairs) {
    Others result;
    const LengthRange& n = object.n_properties;
    const auto n_required = static_cast<uint64_t>(
        std::ranges::count_if(pairs, [](const Pair& pair) { return pair.required; }));
    if (const auto rule = others_rule(object)) result.rule = *rule;
    if (n.most) {
        if (*n.most < n_required) fail_at(object.place, "requires more properties than it allows");
        if (pairs.size() == n_required) {
            result.most = *n.most - n_required;
        } else if (!result.rule.empty() || pairs.size() > *n.most) {
            fail_at(object.place, "maxProperties is not supported beside optional properties");
        }
    }
    if (n.least > n_required) {
        // Keys may come twice, and then count once.
        if (n.least > n_required + 1 || (n_required > 0 && pairs.size() > n_required) ||
            n_required > 0) {
            fail_at(object.place, "minProperties is not supported above 1 and the required ones");
        }
        if (pairs.empty()) result.least = 1;
    }
    if (result.most == 0) result.rule.clear();
    return result;
}

std::optional<std::string> SchemaTranslator::others_rule(const Constraints& object) {
    const ObjectPart* patterned = nullptr;
    bool asked = object.objects.empty() && object.required.empty();
    for (const ObjectPart& part : object.objects) {
        asked = asked || part.additional != nullptr;
        if (part.patterned.empty()) continue;
        if (patterned != nullptr || part.patterned.size() > 1) {
            fail_at(part.schema.at("patternProperties"), "more than one pattern is not supported");
        }
        patterned = &part;
    }
    if (patterned == nullptr) {
        if (!asked) return {};
        std::vector<SchemaPart> schemas;
        for (const ObjectPart& part : object.objects) {
            if (part.additional != nullptr)
                schemas.push_back(part.schema.at("additionalProperties"));
        }
        const auto value = rule_for(schemas, "other");
        const std::string key = value ? other_key(object) : "";
        if (key.empty()) return {};
        return grammar_.add("other-pair", keyed(grammar_, key, *value));
    }
    const SchemaPart place = patterned->schema.at("patternProperties");
    const ObjectPart::Patterned& pattern = patterned->patterned.front();
    if (object.objects.size() > 1 || !object.names.empty()) {
        fail_at(place, "is not supported together with allOf or propertyNames");
    }
    if (patterned->additional != nullptr && patterned->additional->is_object() &&
        !patterned->additional->empty()) {
        fail_at(place, "is not supported beside a schema in additionalProperties");
    }
    std::vector<std::string> names = object.property_names();
    names.insert(names.end(), object.required.begin(), object.required.end());
    for (const std::string& name : names) {
        if (matches(pattern.regex, utf32(name))) {
            fail_at(place, "is not supported where it matches a listed property, here {}",
                    excerpt(name));
        }
    }
    const auto value = rule_for({place.at(pattern.text)}, "other");
    if (!value) return {};
    try {
        const std::string key = grammar_.add("text", pattern_body(grammar_, pattern.regex));
        return grammar_.add("other-pair",
                            keyed(grammar_, fmt::format(R"("\"" {} "\"")", key), *value));
    } catch (const Error& e) {
        fail_at(place, "{}", e.what());
    }
}

std::string SchemaTranslator::other_key(const Constraints& object) {
    std::vector<std::string> names = object.property_names();
    names.insert(names.end(), object.required.begin(), object.required.end());
    if (object.names.empty()) return names.empty() ? add_string(grammar_) : key_except(names);
    if (!names.empty()) {
        fail_at(object.names.front(),
                "is not supported where there are listed properties and others too");
    }
    static const ordered_json text = {{"type", "string"}};
    std::vector<SchemaPart> schemas = object.names;
    schemas.push_back({&text, object.names.front().pointer});
    return rule_for(schemas, "key").value_or("");
}

/// A key that is none of `names`: the names as a tree of characters, and at each place every way to
/// leave it. Such keys have no escapes, so that no name comes in disguise.
std::string SchemaTranslator::key_except(const std::vector<std::string>& names) {
    std::map<std::u32string, std::pair<bool, CharSet>> tree;  // prefix → is a name, what follows
    tree[{}] = {};
    for (const std::string& name : names) {
        const std::u32string text = utf32(name);
        if (!is_plain(text)) continue;
        for (size_t i = 0; i < text.size(); ++i)
            tree[text.substr(0, i)].second.add(text[i], text[i]);
        tree[text].first = true;
    }
    Regex plain{.kind = Regex::Kind::repeat};
    plain.parts.push_back({.kind = Regex::Kind::characters, .characters = plain_characters()});
    const std::string any = grammar_.add("key-rest", pattern_body(grammar_, plain));
    // Longer prefixes first, so that their rules are there.
    std::map<std::u32string, std::string> rules;
    for (auto it = tree.rbegin(); it != tree.rend(); ++it) {
        const auto& [prefix, node] = *it;
        std::string body;
        const auto add = [&](const std::string& alternative) {
            body += (body.empty() ? "" : " | ") + alternative;
        };
        if (!node.first) add(R"("\"")");
        Regex other{.kind = Regex::Kind::characters,
                    .characters = plain_characters().without(node.second)};
        add(pattern_body(grammar_, other) + " " + any + R"( "\"")");
        for (const auto& [first, last] : node.second.ranges()) {
            for (char32_t c = first; c <= last; ++c) {
                add(GrammarText::literal(utf8(c)) + " " + rules.at(prefix + c));
            }
        }
        rules[prefix] = grammar_.add("key-except", body);
    }
    return R"("\"" )" + rules.at({});
}

std::string SchemaTranslator::pairs_text(const std::vector<Pair>& pairs, const Others& others) {
    std::string end;
    if (!others.rule.empty()) {
        end = grammar_.repeat(grammar_.add("more-pairs", after_comma(grammar_, others.rule)), 0,
                              others.most);
    }
    const auto joined = [](const std::string& a, const std::string& b) {
        return a.empty() || b.empty() ? a + b : a + " " + b;
    };
    const auto first_required =
        std::ranges::find_if(pairs, [](const Pair& pair) { return pair.required; });
    if (first_required == pairs.end()) {
        std::string alone;
        if (!others.rule.empty()) {
            std::optional<uint64_t> most;
            if (others.most) most = *others.most - 1;
            alone = joined(
                others.rule,
                grammar_.repeat(grammar_.add("more-pairs", after_comma(grammar_, others.rule)), 0,
                                most));
        }
        if (pairs.empty()) return alone;
        const std::string some = some_of(pairs, 0, pairs.size(), end);
        return alone.empty() ? "(" + some + ")" : "(" + some + " | " + alone + ")";
    }
    // Around one that is always there the commas of all others are clear.
    std::string text;
    for (auto it = pairs.begin(); it != pairs.end(); ++it) {
        if (it < first_required) {
            text = joined(text, fmt::format("({} \",\" {})?", it->rule, add_space(grammar_)));
        } else if (it == first_required) {
            text = joined(text, it->rule);
        } else {
            const std::string one = after_comma(grammar_, it->rule);
            text = joined(text, it->required ? one : "(" + one + ")?");
        }
    }
    return joined(text, end);
}

/// At least one of some optional pairs, by halves: the rules are as many as the pairs.
std::string SchemaTranslator::some_of(const std::vector<Pair>& pairs, size_t first, size_t last,
                                      const std::string& end) {
    const std::string tail = end.empty() ? "" : " " + end;
    if (last - first == 1) return pairs[first].rule + tail;
    const size_t middle = last - first <= 3 ? first + 1 : first + (last - first) / 2;
    const std::string rest = rest_of(pairs, middle, last);
    const std::string with_first =
        middle - first == 1 ? pairs[first].rule
                            : grammar_.add("some-pairs", some_of(pairs, first, middle, ""));
    return with_first + " " + rest + tail + " | " + some_of(pairs, middle, last, end);
}

std::string SchemaTranslator::rest_of(const std::vector<Pair>& pairs, size_t first, size_t last) {
    if (last - first > 4) {
        const size_t middle = first + (last - first) / 2;
        return grammar_.add("rest-pairs",
                            rest_of(pairs, first, middle) + " " + rest_of(pairs, middle, last));
    }
    std::string result;
    for (size_t i = first; i < last; ++i) {
        result +=
            fmt::format("{}({})?", i > first ? " " : "", after_comma(grammar_, pairs[i].rule));
    }
    return result;
}

}  // namespace pleat
