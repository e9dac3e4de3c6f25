#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "jinja/values.h"

namespace pleat::jinja {

/// What a function was called with, by the order and the names of its parameters. Throws Abort for
/// more than there are and for names that it does not have.
class Arguments {
  public:
    Arguments(std::string_view function, const minja::ArgumentsValue& given,
              std::initializer_list<std::string_view> parameters);

    bool has(size_t i) const { return given_[i]; }
    /// Undefined when it is missing.
    const Value& operator[](size_t i) const { return values_[i]; }
    /// Throws Abort when it is missing.
    const Value& need(size_t i) const&;
    Value need(size_t i) && { return static_cast<const Arguments&>(*this).need(i); }

    std::string string(size_t i) const { return string_of(need(i)); }
    std::string string(size_t i, std::string_view otherwise) const;
    int64_t integer(size_t i, int64_t otherwise) const;
    bool boolean(size_t i, bool otherwise) const { return has(i) ? truth(values_[i]) : otherwise; }

  private:
    std::string_view function_;
    std::vector<Value> values_;
    std::vector<bool> given_;
};

}  // namespace pleat::jinja
