#include "jinja/arguments.h"

#include <fmt/format.h>

#include <algorithm>

namespace pleat::jinja {

Arguments::Arguments(std::string_view function, const minja::ArgumentsValue& given,
                     std::initializer_list<std::string_view> parameters)
    : function_(function), values_(parameters.size()), given_(parameters.size()) {
    if (given.args.size() > parameters.size()) {
        throw Abort{fmt::format("{} takes at most {} arguments, not {}", function,
                                parameters.size(), given.args.size())};
    }
    for (size_t i = 0; i < given.args.size(); ++i) {
        values_[i] = given.args[i];
        given_[i] = true;
    }
    for (const auto& [name, value] : given.kwargs) {
        const auto* const at = std::ranges::find(parameters, name);
        if (at == parameters.end())
            throw Abort{fmt::format("{} has no argument {}", function, name)};
        const auto i = static_cast<size_t>(at - parameters.begin());
        if (given_[i]) throw Abort{fmt::format("{} is given {} twice", function, name)};
        values_[i] = value;
        given_[i] = true;
    }
}

const Value& Arguments::need(size_t i) const& {
    if (!given_[i]) throw Abort{fmt::format("{} needs more arguments", function_)};
    return values_[i];
}

std::string Arguments::string(size_t i, std::string_view otherwise) const {
    return has(i) ? string_of(values_[i]) : std::string(otherwise);
}

int64_t Arguments::integer(size_t i, int64_t otherwise) const {
    return has(i) ? integer_of(values_[i]) : otherwise;
}

}  // namespace pleat::jinja
