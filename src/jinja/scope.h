#pragma once

#include <functional>
#include <memory>

#include "jinja/filters.h"
#include "jinja/values.h"

namespace pleat::jinja {

/// What lasts as long as one rendering.
struct Rendering {
    Budget budget;
    /// Scopes that hold a macro, which holds them: taken apart at the end, or none would be freed.
    std::vector<std::weak_ptr<minja::Context>> with_macros;
    /// What a list or a mapping was put into later, and which may stand in it: taken apart as well.
    std::vector<Value> grown_lists;
    std::vector<std::pair<Value, Value>> set_attributes;  ///< (mapping, attribute)
};

/// The variables of a block. All scopes of a rendering are of this class.
class RenderScope : public minja::Context {
  public:
    RenderScope(Rendering& rendering, const Scope& parent)
        : Context(Value::object(), parent), rendering_(rendering) {}

    Rendering& rendering() { return rendering_; }
    void clear() { values_ = Value::object(); }

  private:
    Rendering& rendering_;
};

inline Rendering& rendering_of(const Scope& scope) {
    return static_cast<RenderScope&>(*scope).rendering();
}
inline Budget& budget_of(const Scope& scope) { return rendering_of(scope).budget; }
inline Scope inside(const Scope& scope) {
    return std::make_shared<RenderScope>(rendering_of(scope), scope);
}

/// An expression, ready to be evaluated.
using Code = std::function<Value(const Scope&)>;

/// Adds what can be called without being passed anything: range, dict, namespace and others.
void add_globals(const Scope& scope);

}  // namespace pleat::jinja
