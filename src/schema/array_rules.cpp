#include <algorithm>

#include "schema/json_rules.h"
#include "schema/translator.h"

namespace pleat {

using nlohmann::ordered_json;

SchemaTranslator::Items SchemaTranslator::items_of(const Constraints& array) {
    const std::string& pointer = array.place.pointer;
    const std::string wish = pointer.substr(pointer.rfind('/') + 1) + "-item";
    const size_t n_listed = array.n_prefix();
    const bool others =
        n_listed == 0 || std::ranges::any_of(array.arrays, [](const ArrayPart& part) {
            return part.items.has_value();
        });
    Items result{.least = array.n_items.least, .most = array.n_items.most};
    while (result.prefix.size() < n_listed) {
        const auto rule = rule_for(array.item(result.prefix.size()), wish);
        if (!rule) break;  // no array can be as long
        result.prefix.push_back(*rule);
    }
    const uint64_t n_prefix = result.prefix.size();
    if (others && n_prefix == n_listed) {
        result.more = rule_for(array.item(n_listed), wish).value_or("");
    }
    if (result.more.empty()) result.most = std::min(n_prefix, result.most.value_or(n_prefix));
    // A tuple is written whole unless the schema says that it may be shorter.
    const bool says_least = std::ranges::any_of(
        array.sources, [](const ordered_json* source) { return source->contains("minItems"); });
    if (n_listed > 0 && !says_least) {
        result.least = std::min(n_prefix, result.most.value_or(n_prefix));
    }
    if (result.most && result.least > *result.most) {
        fail_at(array.place, "no array can have its number of items");
    }
    return result;
}

/// What may follow the prefix.
std::string SchemaTranslator::more_items(const Items& items) {
    uint64_t n_before = items.prefix.size();
    if (items.more.empty() || (items.most && *items.most == n_before)) return {};
    std::string first;
    if (n_before == 0) {  // without a comma
        first = items.more + " ";
        n_before = 1;
    }
    std::optional<uint64_t> most;
    if (items.most) most = *items.most - n_before;
    return first + grammar_.repeat(grammar_.add("more-items", after_comma(grammar_, items.more)),
                                   items.least - std::min(items.least, n_before), most);
}

std::string SchemaTranslator::array_body(const Constraints& array, Needs& needs) {
    const Items items = items_of(array);
    const uint64_t n_prefix =
        std::min<uint64_t>(items.prefix.size(), items.most.value_or(items.prefix.size()));
    for (uint64_t i = 0; i < std::min(n_prefix, items.least); ++i) {
        needs.push_back({items.prefix[i]});
    }
    if (items.least > n_prefix) needs.push_back({items.more});
    std::string text = n_prefix == items.prefix.size() ? more_items(items) : "";
    // Backwards, because each optional item can come only after the one before.
    for (uint64_t i = n_prefix; i-- > 0;) {
        const std::string item = i == 0 ? items.prefix[0] : after_comma(grammar_, items.prefix[i]);
        text = item + (text.empty() ? "" : " " + text);
        if (i >= items.least && i > 0) text = grammar_.add("optional-items", "(" + text + ")?");
    }
    return items.least == 0 ? bracketed_or_empty(grammar_, "[]", text)
                            : bracketed(grammar_, "[]", text);
}

}  // namespace pleat
