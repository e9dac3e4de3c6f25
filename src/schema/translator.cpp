#include "schema/translator.h"

#include <algorithm>
#include <set>

#include "schema/json_rules.h"

namespace pleat {

using nlohmann::ordered_json;

namespace {

/// Values of an enum that are listed side by side.
constexpr size_t few_values = 16;

bool is_inside_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80; }

size_t end_of_character(const std::string& text, size_t pos) {
    for (++pos; pos < text.size() && is_inside_character(text[pos]);) ++pos;
    return pos;
}

}  // namespace

SchemaTranslator::SchemaTranslator(GrammarText& grammar, const ordered_json& schema,
                                   const SchemaLimits& limits)
    : grammar_(grammar), limits_(limits), unfolder_(schema, limits) {}

std::string SchemaTranslator::translate() {
    const SchemaPart root = unfolder_.root();
    const auto result = rule_for({root}, "value");
    if (!result) fail_at(root, "allows no value");
    while (!waiting_.empty()) {
        const Waiting next = std::move(waiting_.back());
        waiting_.pop_back();
        Needs needs;
        grammar_.define(next.rule, next.type == json_type::array
                                       ? array_body(next.constraints, needs)
                                       : object_body(next.constraints, needs));
        needs_[next.rule] = std::move(needs);
        check_size(next.constraints.place);
    }
    check_size(root);
    check_endings(root);
    return *result;
}

void SchemaTranslator::check_size(const SchemaPart& at) const {
    const GrammarText::Size size = grammar_.size();
    const GrammarText::Size& most = limits_.grammar;
    if (size.bytes > most.bytes || size.rules > most.rules || size.elements > most.elements) {
        fail_at(at,
                "the grammar so far is too large: {} bytes, {} rules, {} elements; at most {}, "
                "{}, {}",
                size.bytes, size.rules, size.elements, most.bytes, most.rules, most.elements);
    }
}

/// A value that must hold itself would never be complete.
void SchemaTranslator::check_endings(const SchemaPart& at) const {
    std::set<std::string> endless;
    for (const auto& [rule, needs] : needs_) endless.insert(rule);
    const auto can_end = [&](const std::string& rule) { return !endless.contains(rule); };
    for (bool changed = true; changed;) {
        changed = std::erase_if(endless, [&](const std::string& rule) {
                      return std::ranges::all_of(needs_.at(rule), [&](const auto& one_of) {
                          return std::ranges::any_of(one_of, can_end);
                      });
                  }) > 0;
    }
    if (!endless.empty())
        fail_at(at, "a value of {} must hold another one without an end", *endless.begin());
}

std::optional<std::string> SchemaTranslator::rule_for(const std::vector<SchemaPart>& schemas,
                                                      const std::string& wish) {
    std::vector<std::string> rules;
    for (const Constraints& alternative : unfolder_.alternatives(schemas)) {
        if (alternative.types == json_type::all && alternative.sources.empty()) {
            return add_json_value(grammar_);
        }
        add_alternative(alternative, wish, rules);
    }
    std::string body;
    std::vector<std::string> each;
    for (const std::string& rule : rules) {
        if (std::ranges::find(each, rule) != each.end()) continue;
        each.push_back(rule);
        body += (body.empty() ? "" : " | ") + rule;
    }
    if (each.size() < 2) return each.empty() ? std::nullopt : std::optional(each.front());
    std::string choice = grammar_.add(wish + "-choice", body);
    needs_[choice] = {each};
    return choice;
}

void SchemaTranslator::add_alternative(const Constraints& alternative, const std::string& wish,
                                       std::vector<std::string>& rules) {
    const auto add = [&](std::optional<std::string> rule) {
        if (rule) rules.push_back(std::move(*rule));
    };
    if (alternative.values) return add(add_values(alternative));
    const auto has = [&](uint8_t type) { return (alternative.types & type) != 0; };
    if (has(json_type::object)) add(later(alternative, json_type::object, wish));
    if (has(json_type::array)) add(later(alternative, json_type::array, wish));
    if (has(json_type::string)) add(add_string_rule(alternative));
    if (has(json_type::number)) add(add_number_rule(alternative));
    if (has(json_type::boolean)) add(grammar_.add("boolean", R"("true" | "false")"));
    if (has(json_type::null)) add(grammar_.add("null", R"("null")"));
}

/// Texts that share beginnings, as a tree once there are many: a sampler follows every alternative
/// that still fits, and should not have to follow thousands.
std::string SchemaTranslator::one_of(std::span<const std::string> sorted, size_t n_done) {
    std::string body;
    const auto add = [&](const std::string& alternative) {
        body += (body.empty() ? "" : " | ") + alternative;
    };
    if (sorted.size() <= few_values) {
        for (const std::string& text : sorted) add(GrammarText::literal(text.substr(n_done)));
        return body;
    }
    const std::string& first = sorted.front();
    const std::string& last = sorted.back();
    size_t n_same = n_done;
    while (n_same < first.size() && first[n_same] == last[n_same]) ++n_same;
    // Cut between characters, not inside of one.
    while (n_same > n_done && n_same < last.size() && is_inside_character(last[n_same])) --n_same;
    const std::string same = first.substr(n_done, n_same - n_done);
    for (size_t from = 0; from < sorted.size();) {
        const std::string& text = sorted[from];
        if (text.size() == n_same) {  // 1 before 10
            add("\"\"");
            ++from;
            continue;
        }
        const size_t next = std::min(text.size(), end_of_character(text, n_same));
        size_t to = from + 1;
        while (to < sorted.size() && sorted[to].compare(0, next, text, 0, next) == 0) ++to;
        const std::string branch = GrammarText::literal(text.substr(n_same, next - n_same));
        const std::string rest = one_of(sorted.subspan(from, to - from), next);
        add(to - from > 1 ? branch + " " + grammar_.add("constant", rest)
                          : GrammarText::literal(text.substr(n_same)));
        from = to;
    }
    return same.empty() ? body : fmt::format("{} ({})", GrammarText::literal(same), body);
}

std::string SchemaTranslator::add_values(const Constraints& alternative) {
    std::vector<std::string> texts;
    std::string body;
    for (const ordered_json* value : *alternative.values) {
        if (!value->is_structured()) {
            texts.push_back(value->dump());
        } else {
            body += (body.empty() ? "" : " | ") + value_body(grammar_, *value);
        }
    }
    if (texts.size() > few_values) std::ranges::sort(texts);
    const auto twice = std::ranges::unique(texts);
    texts.erase(twice.begin(), twice.end());
    if (!texts.empty()) body = one_of(texts, 0) + (body.empty() ? "" : " | ") + body;
    return grammar_.add("constant", body);
}

std::optional<std::string> SchemaTranslator::add_number_rule(const Constraints& alternative) {
    const NumberRange& range = alternative.numbers;
    const bool whole = (alternative.types & json_type::fraction) == 0;
    if (!range.bounded()) return whole ? add_integer(grammar_) : add_number(grammar_);
    const std::string body = whole ? integer_body(range) : number_body(range);
    if (body.empty()) return {};
    return grammar_.add(whole ? "integer-range" : "number-range", body);
}

std::optional<std::string> SchemaTranslator::add_string_rule(const Constraints& alternative) {
    const LengthRange& length = alternative.length;
    if (length.most && *length.most < length.least) return {};
    const auto quoted = [&](std::string_view name, const std::string& inside) {
        return grammar_.add(name, fmt::format(R"("\"" {} "\"")", inside));
    };
    if (alternative.patterns.empty()) {
        if (length.least == 0 && !length.most) return add_string(grammar_);
        return quoted("string-length",
                      grammar_.repeat(add_character(grammar_), length.least, length.most));
    }
    const Constraints::Pattern& pattern = alternative.patterns.front();
    for (const Constraints::Pattern& other : alternative.patterns) {
        if (*other.schema.json == *pattern.schema.json) continue;
        fail_at(other.schema, "a second pattern or format for the same string is not supported");
    }
    const std::optional<Regex> regex = with_length(pattern.regex, length);
    if (!regex) {
        fail_at(pattern.schema,
                "is not supported together with these minLength and maxLength; say the lengths in "
                "a pattern");
    }
    try {
        return quoted("pattern", grammar_.add("text", pattern_body(grammar_, *regex)));
    } catch (const Error& e) {
        fail_at(pattern.schema, "{}", e.what());
    }
}

std::string SchemaTranslator::later(const Constraints& alternative, uint8_t type,
                                    const std::string& wish) {
    if (type == json_type::object && alternative.objects.empty() && alternative.required.empty() &&
        alternative.names.empty() && alternative.n_properties.least == 0 &&
        !alternative.n_properties.most) {
        return add_json_object(grammar_);
    }
    std::string& rule = known_[{alternative.sources, type}];
    if (rule.empty()) {
        if (++n_rules_ > limits_.nodes) {
            fail_at(alternative.place, "more than {} objects and arrays", limits_.nodes);
        }
        rule = grammar_.reserve(wish + (type == json_type::object ? "-object" : "-array"));
        waiting_.push_back({rule, alternative, type});
    }
    return rule;
}

std::string add_json_schema(GrammarText& grammar, const ordered_json& schema,
                            const SchemaLimits& limits) {
    return SchemaTranslator(grammar, schema, limits).translate();
}

std::string json_schema_grammar(const ordered_json& schema, const SchemaLimits& limits) {
    GrammarText grammar;
    grammar.add("root", add_json_schema(grammar, schema, limits));
    return grammar.text();
}

}  // namespace pleat
