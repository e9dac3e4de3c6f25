#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "jinja/arguments.h"
#include "jinja/scope.h"

namespace pleat::jinja {
namespace {

using Given = minja::ArgumentsValue;

constexpr int64_t max_range = 100'000;

Value range(const Scope& scope, Given& given) {
    const Arguments a("range", given, {"start", "stop", "step"});
    const bool one = !a.has(1);
    const int64_t start = one ? 0 : integer_of(a.need(0));
    const int64_t stop = integer_of(a.need(one ? 0 : 1));
    const int64_t step = a.integer(2, 1);
    if (step == 0) throw Abort{"range step cannot be zero"};
    Value result = Value::array();
    for (int64_t i = start, n = 0; step > 0 ? i < stop : i > stop; ++n) {
        if (n == max_range) throw Abort{fmt::format("range of more than {} numbers", max_range)};
        result.push_back(Value(i));
        if (__builtin_add_overflow(i, step, &i)) break;
    }
    budget_of(scope).bytes(result.size() * sizeof(Value));
    budget_of(scope).step(result.size());
    return result;
}

Value make_mapping(const Scope& scope, Given& given) {
    budget_of(scope).nested();
    Value result = Value::object();
    for (Value source : given.args) {
        if (!is_mapping(source)) throw Abort{"dict needs a mapping"};
        for (const Value& key : source.keys()) result.set(key, source.at(key));
    }
    for (const auto& [name, value] : given.kwargs) result.set(Value(name), value);
    return result;
}

Value strftime_now(const Scope&, Given& given) {
    // With something behind it, since 0 bytes are also what it gives when there is no room.
    const std::string format = Arguments("strftime_now", given, {"format"}).string(0) + ".";
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    std::array<char, 4096> buffer{};
    const size_t size = std::strftime(buffer.data(), buffer.size(), format.c_str(), &local);
    if (size == 0) {
        throw Abort{fmt::format("strftime_now makes more than {} bytes", buffer.size() - 2)};
    }
    return text({buffer.data(), size - 1});
}

Value raise_exception(const Scope&, Given& given) {
    throw Abort{str(Arguments("raise_exception", given, {"message"}).need(0)), true};
}

Value joiner(const Scope&, Given& given) {
    const std::string separator = Arguments("joiner", given, {"sep"}).string(0, ", ");
    const auto used = std::make_shared<bool>(false);
    return Value::callable([separator, used](const Scope&, Given&) {
        return text(std::exchange(*used, true) ? separator : std::string());
    });
}

}  // namespace

void add_globals(const Scope& scope) {
    const auto add = [&](const char* name, Value (*function)(const Scope&, Given&)) {
        scope->set(Value(name), Value::callable(function));
    };
    add("range", range);
    add("dict", make_mapping);
    add("namespace", make_mapping);
    add("joiner", joiner);
    add("strftime_now", strftime_now);
    add("raise_exception", raise_exception);
}

}  // namespace pleat::jinja
