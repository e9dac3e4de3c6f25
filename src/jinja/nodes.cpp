#include "jinja/nodes.h"

#include <fmt/format.h>

#include <algorithm>

namespace pleat::jinja {
namespace {

/// Runs a part of a tag; says which tag it was where it fails.
template <typename Work>
auto placed(size_t line, Work work) {
    try {
        return work();
    } catch (Abort& abort) {
        if (!abort.placed) {
            throw Abort{fmt::format("line {}: {}", line, abort.reason), true};
        }
        throw;
    }
}

class LambdaNode : public minja::TemplateNode {
  public:
    using Work = std::function<void(std::ostringstream&, const Scope&)>;
    // Without a source minja adds none of it to messages.
    explicit LambdaNode(Work work) : TemplateNode({nullptr, 0}), work_(std::move(work)) {}

  protected:
    void do_render(std::ostringstream& out, const Scope& scope) const override {
        budget_of(scope).step();
        work_(out, scope);
    }

  private:
    Work work_;
};

Node make(LambdaNode::Work work) { return std::make_shared<LambdaNode>(std::move(work)); }

std::string rendered(const Node& body, const Scope& scope) {
    std::string result = body->render(scope);
    budget_of(scope).bytes(result.size());
    return result;
}

Value filtered_text(const Code& filtered, std::string body, const Scope& scope) {
    if (!filtered) return text(std::move(body));
    const Scope inner = inside(scope);
    inner->set(Value(""), text(std::move(body)));
    return filtered(inner);
}

/// A function that renders a body in a scope inside of the one it was made in.
Value function_of(const std::shared_ptr<const Macro>& macro, const Scope& home) {
    return Value::callable([macro, home](const Scope&, minja::ArgumentsValue& given) {
        const Budget::Call call(budget_of(home));
        const Scope scope = inside(home);
        const auto& parameters = macro->parameters;
        std::vector<bool> known(parameters.size());
        for (size_t i = 0; i < given.args.size(); ++i) {
            if (i >= parameters.size()) {
                throw Abort{
                    fmt::format("{} takes at most {} arguments", macro->name, parameters.size())};
            }
            scope->set(Value(parameters[i].first), given.args[i]);
            known[i] = true;
        }
        for (const auto& [name, value] : given.kwargs) {
            const auto at =
                std::ranges::find(parameters, name, [](const auto& p) { return p.first; });
            // Which only a call block passes.
            if (at == parameters.end() && name != "caller") {
                throw Abort{fmt::format("{} has no parameter {}", macro->name, name)};
            }
            scope->set(Value(name), value);
            if (at != parameters.end()) known[static_cast<size_t>(at - parameters.begin())] = true;
        }
        for (size_t i = 0; i < parameters.size(); ++i) {
            if (known[i]) continue;
            const auto& [name, otherwise] = parameters[i];
            scope->set(Value(name), otherwise ? otherwise(scope) : Value());
        }
        return text(rendered(macro->body, scope));
    });
}

}  // namespace

Node make_text(std::string text) {
    return std::make_shared<minja::TextNode>(minja::Location{nullptr, 0}, text);
}

Node make_sequence(std::vector<Node> nodes) {
    if (nodes.size() == 1) return nodes.front();
    return std::make_shared<minja::SequenceNode>(minja::Location{nullptr, 0}, std::move(nodes));
}

Node make_print(size_t line, Code code) {
    return make([line, code = std::move(code)](std::ostringstream& out, const Scope& scope) {
        const std::string shown = placed(line, [&] { return str(code(scope)); });
        budget_of(scope).bytes(shown.size());
        out << shown;
    });
}

Node make_if(std::vector<Branch> branches) {
    return make([branches = std::move(branches)](std::ostringstream& out, const Scope& scope) {
        for (const Branch& branch : branches) {
            const bool taken = !branch.condition ||
                               placed(branch.line, [&] { return truth(branch.condition(scope)); });
            if (taken) return branch.body->render(out, scope);
        }
    });
}

namespace {

/// What a loop's body sees as `loop`.
class LoopVariable {
  public:
    explicit LoopVariable(const std::vector<Value>& items) : items_(items) {
        // Which may be given the loop itself.
        changed_ = Value::callable(
            [weak = std::weak_ptr(last_)](const Scope&, minja::ArgumentsValue& given) {
                const auto last = weak.lock();
                if (!last) throw Abort{"changed is called after its loop"};
                const bool same =
                    last->size() == given.args.size() &&
                    std::ranges::equal(*last, given.args,
                                       [](const Value& a, const Value& b) { return equal(a, b); });
                if (!same || last->empty()) *last = given.args;
                return Value(!same || given.args.empty());
            });
    }

    Value at(size_t i) const {
        const auto n = static_cast<int64_t>(items_.size());
        const auto index = static_cast<int64_t>(i);
        Value loop = Value::object();
        loop.set("index", Value(index + 1));
        loop.set("index0", Value(index));
        loop.set("revindex", Value(n - index));
        loop.set("revindex0", Value(n - index - 1));
        loop.set("first", Value(i == 0));
        loop.set("last", Value(index + 1 == n));
        loop.set("length", Value(n));
        // Only recursive loops are deeper.
        loop.set("depth", Value(int64_t{1}));
        loop.set("depth0", Value(int64_t{0}));
        if (i > 0) loop.set("previtem", items_[i - 1]);
        if (i + 1 < items_.size()) loop.set("nextitem", items_[i + 1]);
        loop.set("changed", changed_);
        loop.set("cycle", Value::callable([i](const Scope&, minja::ArgumentsValue& given) {
                     if (given.args.empty()) throw Abort{"cycle needs values"};
                     return given.args[i % given.args.size()];
                 }));
        return loop;
    }

  private:
    const std::vector<Value>& items_;
    const std::shared_ptr<std::vector<Value>> last_ = std::make_shared<std::vector<Value>>();
    Value changed_;
};

/// The items that pass the loop's condition. It is asked as late as can be, since it may depend on
/// what earlier rounds did: right before an item's round, or before the first of them when the body
/// asks for later rounds.
class LoopItems {
  public:
    LoopItems(const Loop& loop, const Scope& scope)
        : loop_(loop), scope_(scope), all_(elements(loop.items(scope))) {
        budget_of(scope).bytes(weight(all_));
        while (loop.uses == LoopUse::later_rounds && find_next()) {
        }
    }

    /// Whether there is an i-th item; before it is asked for, all in front of it were.
    bool has(size_t i) { return i < taken_.size() || find_next(); }
    const std::vector<Value>& taken() const { return taken_; }

  private:
    bool find_next() {
        while (asked_ < all_.size()) {
            const Value& item = all_[asked_++];
            if (!passes(item)) continue;
            taken_.push_back(item);
            return true;
        }
        return false;
    }

    bool passes(const Value& item) const {
        if (!loop_.condition) return true;
        const Scope inner = inside(scope_);
        loop_.target.assign(inner, item);
        return truth(loop_.condition(inner));
    }

    const Loop& loop_;
    const Scope& scope_;
    std::vector<Value> all_;
    size_t asked_ = 0;  ///< the condition was asked for as many
    std::vector<Value> taken_ = {};
};

}  // namespace

Node make_for(Loop given) {
    return make([loop = std::move(given)](std::ostringstream& out, const Scope& scope) {
        LoopItems items = placed(loop.line, [&] { return LoopItems(loop, scope); });
        const LoopVariable variable(items.taken());
        bool went_through = false;  // a round, without break or continue
        for (size_t i = 0; placed(loop.line, [&] { return items.has(i); }); ++i) {
            // Each round has its own variables.
            const Scope inner = inside(scope);
            placed(loop.line, [&] { loop.target.assign(inner, items.taken()[i]); });
            if (loop.uses != LoopUse::none) inner->set(Value("loop"), variable.at(i));
            try {
                loop.body->render(out, inner);
                went_through = true;
            } catch (const minja::LoopControlException& control) {
                if (control.control_type == minja::LoopControlType::Break) break;
            }
        }
        // Jinja's rule; Python has another.
        if (!went_through && loop.otherwise) loop.otherwise->render(out, scope);
    });
}

Node make_loop_control(bool breaks) {
    return std::make_shared<minja::LoopControlNode>(
        minja::Location{nullptr, 0},
        breaks ? minja::LoopControlType::Break : minja::LoopControlType::Continue);
}

Node make_set(size_t line, Target target, Code value) {
    return make([line, target = std::move(target), value = std::move(value)](std::ostringstream&,
                                                                             const Scope& scope) {
        placed(line, [&] { target.assign(scope, value(scope)); });
    });
}

Node make_set_block(size_t line, Target target, Node body, Code filtered) {
    return make([line, target = std::move(target), body = std::move(body),
                 filtered = std::move(filtered)](std::ostringstream&, const Scope& scope) {
        std::string text = rendered(body, inside(scope));
        placed(line,
               [&] { target.assign(scope, filtered_text(filtered, std::move(text), scope)); });
    });
}

Node make_filter_block(size_t line, Node body, Code filtered) {
    return make([line, body = std::move(body), filtered = std::move(filtered)](
                    std::ostringstream& out, const Scope& scope) {
        std::string text = rendered(body, inside(scope));
        out << placed(line, [&] { return str(filtered_text(filtered, std::move(text), scope)); });
    });
}

Node make_with(size_t line, std::vector<std::pair<Target, Code>> variables, Node body) {
    return make([line, variables = std::move(variables), body = std::move(body)](
                    std::ostringstream& out, const Scope& scope) {
        const Scope inner = inside(scope);
        placed(line, [&] {
            for (const auto& [target, value] : variables) target.assign(inner, value(scope));
        });
        body->render(out, inner);
    });
}

Node make_macro(Macro given) {
    const auto macro = std::make_shared<const Macro>(std::move(given));
    return make([macro](std::ostringstream&, const Scope& scope) {
        rendering_of(scope).with_macros.push_back(scope);
        scope->set(Value(macro->name), function_of(macro, scope));
    });
}

Node make_call(Macro caller, Code call) {
    const auto macro = std::make_shared<const Macro>(std::move(caller));
    return make([macro, call = std::move(call)](std::ostringstream& out, const Scope& scope) {
        const Scope inner = inside(scope);
        inner->set(Value(ExpressionParser::caller_variable), function_of(macro, scope));
        out << placed(macro->line, [&] { return str(call(inner)); });
    });
}

}  // namespace pleat::jinja
