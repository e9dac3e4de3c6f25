#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "jinja/lexer.h"
#include "jinja/scope.h"

namespace pleat::jinja {

/// Arguments of a call: what * and ** unpack is marked by a name of its own.
struct CallCode {
    struct Argument {
        std::string name = {};  ///< empty: by its place
        Code value = {};
        int stars = 0;
    };
    std::vector<Argument> arguments = {};

    minja::ArgumentsValue evaluate(const Scope& scope) const;
};

/// Where an assignment goes: a name, a name's attribute, or several of these.
struct Target {
    std::string name = {};
    std::string attribute = {};
    std::vector<Target> parts = {};

    void assign(const Scope& scope, const Value& value) const;
};

/// What a loop's body asks its variable `loop`, as far as its text tells.
enum class LoopUse {
    none,
    rounds_so_far,  ///< only index, index0, first, previtem, depth, depth0, changed, cycle
    later_rounds,   ///< its length, say
};

/// Reads the expressions of one tag (Jinja 3.1's grammar) into code. Throws Error, with line and
/// character, for what is none. Filters and tests that do not exist fail when they are run, and go
/// to `missing`.
class ExpressionParser {
  public:
    ExpressionParser(std::string_view source, const std::vector<Token>& tokens,
                     std::vector<std::string>& missing)
        : source_(source), tokens_(tokens), missing_(missing) {}

    /// A whole expression, or several with commas between them: a tuple.
    Code tuple(bool with_condition = true);
    Code expression();
    Target target(bool with_attribute);
    /// name(...): a filter without its value, in front of which `value` is put.
    Code filter_chain(Code value);
    /// ([name [= default], ...])
    std::vector<std::pair<std::string, Code>> signature();
    std::string name(std::string_view what);
    /// The call of a call block: it passes `caller` on, from a variable of the name
    /// caller_variable.
    Code call_with_caller();
    static constexpr const char* caller_variable = "caller of this call";

    const Token& peek() const { return tokens_[pos_]; }
    bool skip(std::string_view symbol_or_name);
    void expect(std::string_view symbol_or_name);
    void end();
    [[noreturn]] void error(std::string_view message) const;

    LoopUse uses_loop() const { return uses_loop_; }

  private:
    struct Level;

    Code either();
    Code both();
    Code negation();
    Code comparison();
    Code sum();
    Code concatenation();
    Code product();
    Code power();
    Code unary(bool with_filter);
    Code primary();
    Code postfix(Code value);
    Code filters(Code value);
    Code one_filter(Code value);
    Code test(Code value);
    Code parenthesis();
    Code list_literal();
    Code mapping_literal();
    Code subscript(Code value);
    Code attribute_of(Code value);
    CallCode call();
    Code not_there(std::string_view kind, const std::string& name);
    Code name_or_constant();
    LoopUse use_of_loop() const;

    std::string_view source_;
    const std::vector<Token>& tokens_;
    std::vector<std::string>& missing_;
    size_t pos_ = 0;
    int depth_ = 0;
    LoopUse uses_loop_ = LoopUse::none;
    bool passes_caller_ = false;
};

}  // namespace pleat::jinja
