#include "jinja/list_filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "jinja/arguments.h"
#include "jinja/operators.h"
#include "jinja/texts.h"
#include "jinja/unicode.h"

namespace pleat::jinja {
namespace {

using Given = minja::ArgumentsValue;

/// Items of the first argument, which the budget pays for.
std::vector<Value> items_of(const Value& v, Budget& budget) {
    std::vector<Value> result = elements(v);
    budget.step(result.size());
    budget.bytes(weight(result));
    return result;
}

/// "a.b.0" of a value.
Value by_path(Value v, const Value& path) {
    if (!path.is_string()) return item(v, path);
    for (const std::string& part : split(string_of(path), ".", -1)) {
        const bool number = !part.empty() && part.size() < 10 &&
                            std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
        v = number ? item(v, Value(static_cast<int64_t>(std::stoll(part)))) : item(v, text(part));
    }
    return v;
}

Value lowered(const Value& v) { return v.is_string() ? text(to_lower(string_of(v))) : v; }

void sort_by(std::vector<Value>& items, bool reverse,
             const std::function<Value(const Value&)>& key) {
    std::vector<std::pair<Value, Value>> keyed;
    for (Value& v : items) keyed.emplace_back(key(v), std::move(v));
    Walk walk;
    // Not stable_sort with the order turned around: equal ones stay in order in both directions.
    std::ranges::stable_sort(keyed, [&](const auto& a, const auto& b) {
        return reverse ? less(b.first, a.first, walk) : less(a.first, b.first, walk);
    });
    items.clear();
    for (auto& [k, v] : keyed) items.push_back(std::move(v));
}

Value sort(const Scope&, Given& given, Budget& budget) {
    const Arguments a("sort", given, {"value", "reverse", "case_sensitive", "attribute"});
    std::vector<Value> items = items_of(a.need(0), budget);
    const bool exact = a.boolean(2, false);
    std::vector<std::string> paths;
    const bool by_attribute = a.has(3) && !is_none(a[3]);
    if (by_attribute && a[3].is_string()) paths = split(string_of(a[3]), ",", -1);
    sort_by(items, a.boolean(1, false), [&](const Value& v) {
        const auto fold = [&](const Value& k) { return exact ? k : lowered(k); };
        if (!by_attribute) return fold(v);
        if (paths.size() < 2) return fold(by_path(v, a[3]));
        std::vector<Value> keys;
        for (const std::string& path : paths) keys.push_back(fold(by_path(v, text(path))));
        return list(std::move(keys));
    });
    return list(std::move(items));
}

Value dictsort(const Scope&, Given& given, Budget& budget) {
    const Arguments a("dictsort", given, {"value", "case_sensitive", "by", "reverse"});
    const Value& map = a.need(0);
    if (!is_mapping(map)) throw Abort{fmt::format("dictsort of {}", type_name(map))};
    const bool exact = a.boolean(1, false);
    const std::string by = a.string(2, "key");
    if (by != "key" && by != "value") throw Abort{"dictsort is by key or by value"};
    std::vector<Value> pairs;
    for (const Value& key : items_of(map, budget))
        pairs.push_back(Value::array({key, map.at(key)}));
    sort_by(pairs, a.boolean(3, false), [&](const Value& pair) {
        const Value& key = pair.at(size_t{by == "value" ? 1U : 0U});
        return exact ? key : lowered(key);
    });
    return list(std::move(pairs));
}

Value first(const Scope&, Given& given, Budget& budget) {
    const std::vector<Value> items = items_of(Arguments("first", given, {"value"}).need(0), budget);
    return items.empty() ? Value() : items.front();
}

Value last(const Scope&, Given& given, Budget& budget) {
    const std::vector<Value> items = items_of(Arguments("last", given, {"value"}).need(0), budget);
    return items.empty() ? Value() : items.back();
}

Value list_filter(const Scope&, Given& given, Budget& budget) {
    return list(items_of(Arguments("list", given, {"value"}).need(0), budget));
}

Value items_filter(const Scope&, Given& given, Budget& budget) {
    const Value& map = Arguments("items", given, {"value"}).need(0);
    if (is_undefined(map)) return Value::array();
    if (!is_mapping(map)) throw Abort{"items needs a mapping"};
    std::vector<Value> pairs;
    for (const Value& key : items_of(map, budget))
        pairs.push_back(Value::array({key, map.at(key)}));
    return list(std::move(pairs));
}

Value reverse(const Scope&, Given& given, Budget& budget) {
    const Value& v = Arguments("reverse", given, {"value"}).need(0);
    if (v.is_string()) {
        std::u32string all = characters(string_of(v));
        std::ranges::reverse(all);
        return text(utf8(all));
    }
    std::vector<Value> items = items_of(v, budget);
    std::ranges::reverse(items);
    return list(std::move(items));
}

Value join(const Scope&, Given& given, Budget& budget) {
    const Arguments a("join", given, {"value", "d", "attribute"});
    const std::string separator = a.has(1) ? str(a[1]) : "";
    const bool by_attribute = a.has(2) && !is_none(a[2]);
    std::string result;
    bool is_first = true;
    for (const Value& v : items_of(a.need(0), budget)) {
        if (!is_first) result += separator;
        is_first = false;
        result += str(by_attribute ? by_path(v, a[2]) : v);
        check_size(result);
    }
    budget.bytes(result.size());
    return text(std::move(result));
}

Value unique(const Scope&, Given& given, Budget& budget) {
    const Arguments a("unique", given, {"value", "case_sensitive", "attribute"});
    const bool exact = a.boolean(1, false);
    Walk walk;
    std::vector<Value> seen;
    std::vector<Value> result;
    for (const Value& v : items_of(a.need(0), budget)) {
        Value key = a.has(2) && !is_none(a[2]) ? by_path(v, a[2]) : v;
        if (!exact) key = lowered(key);
        budget.step(seen.size());
        if (std::ranges::any_of(seen, [&](const Value& s) { return equal(s, key, walk); })) {
            continue;
        }
        seen.push_back(key);
        result.push_back(v);
    }
    return list(std::move(result));
}

Value extreme(const Arguments& a, Budget& budget, bool greatest) {
    const bool exact = a.boolean(1, false);
    const auto key = [&](const Value& v) {
        const Value k = a.has(2) && !is_none(a[2]) ? by_path(v, a[2]) : v;
        return exact ? k : lowered(k);
    };
    Walk walk;
    Value best;
    bool have = false;
    for (const Value& v : items_of(a.need(0), budget)) {
        if (!have || (greatest ? less(key(best), key(v), walk) : less(key(v), key(best), walk))) {
            best = v;
        }
        have = true;
    }
    return best;
}

Value max(const Scope&, Given& given, Budget& budget) {
    return extreme({"max", given, {"value", "case_sensitive", "attribute"}}, budget, true);
}

Value min(const Scope&, Given& given, Budget& budget) {
    return extreme({"min", given, {"value", "case_sensitive", "attribute"}}, budget, false);
}

Value sum(const Scope&, Given& given, Budget& budget) {
    const Arguments a("sum", given, {"value", "attribute", "start"});
    Value total = a.has(2) ? a[2] : Value(int64_t{0});
    for (const Value& v : items_of(a.need(0), budget)) {
        total = arithmetic("+", total, a.has(1) && !is_none(a[1]) ? by_path(v, a[1]) : v, budget);
    }
    return total;
}

Value map(const Scope& scope, Given& given, Budget& budget) {
    if (given.args.empty()) throw Abort{"map needs a list"};
    // Jinja looks whether there is anything before it iterates.
    if (!truth(given.args[0])) return Value::array();
    std::vector<Value> items = items_of(given.args[0], budget);
    if (given.args.size() == 1) {
        const Arguments a("map", given, {"value", "attribute", "default"});
        const Value& path = a.need(1);
        for (Value& v : items) {
            v = by_path(v, path);
            if (is_undefined(v) && a.has(2)) v = a[2];
        }
        return list(std::move(items));
    }
    const std::string name = string_of(given.args[1]);
    const Filter filter = find_filter(name);
    if (!filter) throw Abort{fmt::format("there is no filter {}", name)};
    for (Value& v : items) {
        Given inner{{v}, given.kwargs};
        inner.args.insert(inner.args.end(), given.args.begin() + 2, given.args.end());
        budget.step();
        v = filter(scope, inner, budget);
    }
    return list(std::move(items));
}

/// select, reject and their attr forms: `n_fixed` arguments stand before the test's name.
Value chosen(Given& given, Budget& budget, bool keep, bool by_attribute) {
    const size_t n_fixed = by_attribute ? 2 : 1;
    if (given.args.size() < n_fixed) throw Abort{"this filter needs more arguments"};
    if (!truth(given.args[0])) return Value::array();
    Predicate test = nullptr;
    if (given.args.size() > n_fixed) {
        const std::string name = string_of(given.args[n_fixed]);
        test = find_test(name);
        if (!test) throw Abort{fmt::format("there is no test {}", name)};
    }
    std::vector<Value> result;
    for (const Value& v : items_of(given.args[0], budget)) {
        const Value tested = by_attribute ? by_path(v, given.args[1]) : v;
        bool holds = false;
        if (test) {
            Given inner{{tested}, given.kwargs};
            inner.args.insert(inner.args.end(),
                              given.args.begin() + static_cast<std::ptrdiff_t>(n_fixed) + 1,
                              given.args.end());
            holds = test(inner);
        } else {
            holds = truth(tested);
        }
        if (holds == keep) result.push_back(v);
    }
    return list(std::move(result));
}

Value select(const Scope&, Given& g, Budget& b) { return chosen(g, b, true, false); }
Value reject(const Scope&, Given& g, Budget& b) { return chosen(g, b, false, false); }
Value selectattr(const Scope&, Given& g, Budget& b) { return chosen(g, b, true, true); }
Value rejectattr(const Scope&, Given& g, Budget& b) { return chosen(g, b, false, true); }

Value groupby(const Scope&, Given& given, Budget& budget) {
    const Arguments a("groupby", given, {"value", "attribute", "default", "case_sensitive"});
    const bool exact = a.boolean(3, false);
    const auto key = [&](const Value& v) {
        Value k = by_path(v, a.need(1));
        if (is_undefined(k) && a.has(2)) k = a[2];
        return k;
    };
    std::vector<Value> items = items_of(a.need(0), budget);
    sort_by(items, false, [&](const Value& v) { return exact ? key(v) : lowered(key(v)); });
    Walk walk;
    Value groups = Value::array();
    Value current;
    for (const Value& v : items) {
        const Value k = exact ? key(v) : lowered(key(v));
        if (groups.size() == 0 || !equal(current, k, walk)) {
            groups.push_back(Value::array({key(v), Value::array()}));
            current = k;
        }
        groups.at(groups.size() - 1).at(size_t{1}).push_back(v);
    }
    return groups;
}

Value batch(const Scope&, Given& given, Budget& budget) {
    const Arguments a("batch", given, {"value", "linecount", "fill_with"});
    const int64_t size = integer_of(a.need(1));
    if (size < 1) throw Abort{"batch needs a positive number"};
    Value result = Value::array();
    for (const Value& v : items_of(a.need(0), budget)) {
        if (result.size() == 0 ||
            static_cast<int64_t>(result.at(result.size() - 1).size()) == size) {
            result.push_back(Value::array());
        }
        result.at(result.size() - 1).push_back(v);
    }
    if (a.has(2) && !is_none(a[2]) && result.size() > 0) {
        Value& rest = result.at(result.size() - 1);
        budget.bytes(static_cast<size_t>(size) * sizeof(Value));
        while (static_cast<int64_t>(rest.size()) < size) rest.push_back(a[2]);
    }
    return result;
}

using Table = std::map<std::string, Filter, std::less<>>;

}  // namespace

Filter find_list_filter(std::string_view name) {
    static const Table filters{
        {"batch", batch},
        {"dictsort", dictsort},
        {"first", first},
        {"groupby", groupby},
        {"items", items_filter},
        {"join", join},
        {"last", last},
        {"list", list_filter},
        {"map", map},
        {"max", max},
        {"min", min},
        {"reject", reject},
        {"rejectattr", rejectattr},
        {"reverse", reverse},
        {"select", select},
        {"selectattr", selectattr},
        {"sort", sort},
        {"sum", sum},
        {"unique", unique},
    };
    const auto found = filters.find(name);
    return found == filters.end() ? nullptr : found->second;
}

}  // namespace pleat::jinja
