#include "jinja/expression_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "jinja/methods.h"
#include "jinja/operators.h"

namespace pleat::jinja {
namespace {

Code constant(Value value) {
    return [value = std::move(value)](const Scope&) { return value; };
}

/// Counts what is evaluated.
Code counted(Code code) {
    return [code = std::move(code)](const Scope& scope) {
        budget_of(scope).step();
        return code(scope);
    };
}

Code operation(std::string op, Code left, Code right) {
    return counted(
        [op = std::move(op), left = std::move(left), right = std::move(right)](const Scope& scope) {
            const Value a = left(scope);
            return arithmetic(op, a, right(scope), budget_of(scope));
        });
}

bool is_constant_name(std::string_view name) {
    static constexpr std::array<std::string_view, 6> names{"true",  "True", "false",
                                                           "False", "none", "None"};
    return std::ranges::find(names, name) != names.end();
}

}  // namespace

minja::ArgumentsValue CallCode::evaluate(const Scope& scope) const {
    minja::ArgumentsValue given;
    for (const Argument& argument : arguments) {
        const Value value = argument.value(scope);
        if (argument.stars == 1) {
            for (const Value& v : elements(value)) given.args.push_back(v);
        } else if (argument.stars == 2) {
            if (!is_mapping(value)) throw Abort{"** needs a mapping"};
            for (const Value& key : elements(value)) {
                given.kwargs.emplace_back(string_of(key), value.at(key));
            }
        } else if (argument.name.empty()) {
            given.args.push_back(value);
        } else {
            given.kwargs.emplace_back(argument.name, value);
        }
    }
    return given;
}

void Target::assign(const Scope& scope, const Value& value) const {
    if (!parts.empty()) {
        const std::vector<Value> values = elements(value);
        if (values.size() != parts.size()) {
            throw Abort{fmt::format("{} values for {} names", values.size(), parts.size())};
        }
        for (size_t i = 0; i < parts.size(); ++i) parts[i].assign(scope, values[i]);
        return;
    }
    if (attribute.empty()) return scope->set(Value(name), value);
    Value object = scope->contains(Value(name)) ? scope->at(Value(name)) : Value();
    if (!is_mapping(object)) throw Abort{fmt::format("{} is no namespace", name)};
    Rendering& rendering = rendering_of(scope);
    rendering.budget.nested();
    if (!value.is_primitive()) rendering.set_attributes.emplace_back(object, attribute);
    object.set(Value(attribute), value);
}

/// One rule in another, so that hostile templates cannot end the stack.
struct ExpressionParser::Level {
    explicit Level(ExpressionParser& parser) : parser_(parser) {
        if (++parser_.depth_ > 4000) parser_.error("nested too deep");
    }
    ~Level() { --parser_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    ExpressionParser& parser_;
};

void ExpressionParser::error(std::string_view message) const {
    fail_at(source_, peek().pos, message);
}

bool ExpressionParser::skip(std::string_view symbol_or_name) {
    if (!peek().is(symbol_or_name)) return false;
    ++pos_;
    return true;
}

void ExpressionParser::expect(std::string_view symbol_or_name) {
    if (!skip(symbol_or_name)) error(fmt::format("expected {}", symbol_or_name));
}

void ExpressionParser::end() {
    if (peek().kind != Token::Kind::end) {
        error(fmt::format("expected the end of the tag, not {}", peek().text));
    }
}

std::string ExpressionParser::name(std::string_view what) {
    if (peek().kind != Token::Kind::name) error(fmt::format("expected {}", what));
    return tokens_[pos_++].text;
}

Code ExpressionParser::tuple(bool with_condition) {
    const auto part = [&] { return with_condition ? expression() : either(); };
    Code first = part();
    if (!peek().is(",")) return first;
    std::vector<Code> items{std::move(first)};
    while (skip(",")) {
        const Token& next = peek();
        if (next.kind == Token::Kind::end || next.is(")")) break;
        items.push_back(part());
    }
    return counted([items = std::move(items)](const Scope& scope) {
        budget_of(scope).nested();
        Value result = Value::array();
        for (const Code& item : items) result.push_back(item(scope));
        return result;
    });
}

Code ExpressionParser::expression() {
    const Level level(*this);
    Code value = either();
    while (skip("if")) {
        Code condition = either();
        Code otherwise = skip("else") ? expression() : constant({});
        value = [value = std::move(value), condition = std::move(condition),
                 otherwise = std::move(otherwise)](const Scope& scope) {
            return truth(condition(scope)) ? value(scope) : otherwise(scope);
        };
    }
    return value;
}

Code ExpressionParser::either() {
    Code left = both();
    while (skip("or")) {
        left = [left = std::move(left), right = both()](const Scope& scope) {
            Value value = left(scope);
            return truth(value) ? value : right(scope);
        };
    }
    return left;
}

Code ExpressionParser::both() {
    Code left = negation();
    while (skip("and")) {
        left = [left = std::move(left), right = negation()](const Scope& scope) {
            Value value = left(scope);
            return truth(value) ? right(scope) : value;
        };
    }
    return left;
}

Code ExpressionParser::negation() {
    if (!skip("not")) return comparison();
    const Level level(*this);
    return [code = negation()](const Scope& scope) { return Value(!truth(code(scope))); };
}

Code ExpressionParser::comparison() {
    static constexpr std::array<std::string_view, 7> symbols{
        "==", "!=", "<=", ">=", "<", ">", "in"};
    Code first = sum();
    std::vector<std::pair<std::string, Code>> rest;
    for (;;) {
        std::string op;
        for (const std::string_view symbol : symbols) {
            if (peek().is(symbol)) op = symbol;
        }
        if (peek().is("not") && tokens_[pos_ + 1].is("in")) {
            ++pos_;
            op = "not in";
        }
        if (op.empty()) break;
        ++pos_;
        rest.emplace_back(op, sum());
    }
    if (rest.empty()) return first;
    return counted([first = std::move(first), rest = std::move(rest)](const Scope& scope) {
        Value left = first(scope);
        for (const auto& [op, code] : rest) {
            Value right = code(scope);
            if (right.is_array()) budget_of(scope).step(right.size());
            if (!jinja::comparison(op, left, right)) return Value(false);
            left = std::move(right);
        }
        return Value(true);
    });
}

Code ExpressionParser::sum() {
    Code left = concatenation();
    while (peek().is("+") || peek().is("-")) {
        std::string op = tokens_[pos_++].text;
        left = operation(std::move(op), std::move(left), concatenation());
    }
    return left;
}

Code ExpressionParser::concatenation() {
    Code left = product();
    while (skip("~")) left = operation("~", std::move(left), product());
    return left;
}

Code ExpressionParser::product() {
    Code left = power();
    while (peek().is("*") || peek().is("/") || peek().is("//") || peek().is("%")) {
        std::string op = tokens_[pos_++].text;
        left = operation(std::move(op), std::move(left), power());
    }
    return left;
}

Code ExpressionParser::power() {
    Code left = unary(true);
    while (skip("**")) left = operation("**", std::move(left), unary(true));
    return left;
}

Code ExpressionParser::unary(bool with_filter) {
    const Level level(*this);
    Code value;
    if (skip("-")) {
        value = [code = unary(false)](const Scope& scope) { return negative(code(scope)); };
    } else if (skip("+")) {
        value = [code = unary(false)](const Scope& scope) {
            return negative(negative(code(scope)));
        };
    } else {
        value = primary();
    }
    value = postfix(std::move(value));
    return with_filter ? filters(std::move(value)) : value;
}

Code ExpressionParser::primary() {
    const Token& token = peek();
    switch (token.kind) {
        case Token::Kind::name:
            return name_or_constant();
        case Token::Kind::text: {
            std::string all;
            while (peek().kind == Token::Kind::text) all += tokens_[pos_++].text;
            return constant(text(std::move(all)));
        }
        case Token::Kind::integer: {
            int64_t number = 0;
            const char* last = token.text.data() + token.text.size();
            const auto [end, status] = std::from_chars(token.text.data(), last, number);
            if (status != std::errc{} || end != last) error("number out of range");
            ++pos_;
            return constant(Value(number));
        }
        case Token::Kind::real:
            ++pos_;
            return constant(Value(std::strtod(token.text.c_str(), nullptr)));
        default:
            break;
    }
    if (skip("(")) return parenthesis();
    if (skip("[")) return list_literal();
    if (skip("{")) return mapping_literal();
    error("expected a value");
}

Code ExpressionParser::name_or_constant() {
    const std::string name = tokens_[pos_].text;
    static constexpr std::array<std::string_view, 8> words{"and", "or", "not",  "in",
                                                           "is",  "if", "else", "elif"};
    if (std::ranges::find(words, name) != words.end()) error("expected a value");
    ++pos_;
    if (name == "true" || name == "True") return constant(Value(true));
    if (name == "false" || name == "False") return constant(Value(false));
    if (is_constant_name(name)) return constant(none());
    if (name == "loop") uses_loop_ = std::max(uses_loop_, use_of_loop());
    return counted([key = Value(name)](const Scope& scope) {
        return scope->contains(key) ? scope->at(key) : Value();
    });
}

LoopUse ExpressionParser::use_of_loop() const {
    static constexpr std::array<std::string_view, 8> so_far{
        "index", "index0", "first", "previtem", "depth", "depth0", "changed", "cycle"};
    const bool known =
        peek().is(".") && std::ranges::find(so_far, tokens_[pos_ + 1].text) != so_far.end();
    return known ? LoopUse::rounds_so_far : LoopUse::later_rounds;
}

Code ExpressionParser::parenthesis() {
    // Not a constant: methods may change it.
    if (skip(")")) return counted([](const Scope&) { return Value::array(); });
    Code value = tuple();
    expect(")");
    return value;
}

Code ExpressionParser::list_literal() {
    std::vector<Code> items;
    while (!skip("]")) {
        items.push_back(expression());
        if (!peek().is("]")) expect(",");
    }
    return counted([items = std::move(items)](const Scope& scope) {
        budget_of(scope).nested();
        Value result = Value::array();
        for (const Code& item : items) result.push_back(item(scope));
        return result;
    });
}

Code ExpressionParser::mapping_literal() {
    std::vector<std::pair<Code, Code>> items;
    while (!skip("}")) {
        Code key = expression();
        expect(":");
        items.emplace_back(std::move(key), expression());
        if (!peek().is("}")) expect(",");
    }
    return counted([items = std::move(items)](const Scope& scope) {
        budget_of(scope).nested();
        Value result = Value::object();
        for (const auto& [key, value] : items) {
            const Value name = key(scope);
            if (!name.is_hashable()) throw Abort{"a list or mapping cannot be a key"};
            result.set(name, value(scope));
        }
        return result;
    });
}

Code ExpressionParser::postfix(Code value) {
    for (;;) {
        if (skip(".")) {
            value = attribute_of(std::move(value));
        } else if (skip("[")) {
            value = subscript(std::move(value));
        } else if (peek().is("(")) {
            value = counted([value = std::move(value), arguments = call()](const Scope& scope) {
                const Value function = value(scope);
                if (!function.is_callable()) {
                    throw Abort{fmt::format("{} cannot be called", type_name(function))};
                }
                minja::ArgumentsValue given = arguments.evaluate(scope);
                return function.call(scope, given);
            });
        } else {
            return value;
        }
    }
}

Code ExpressionParser::attribute_of(Code value) {
    if (peek().kind == Token::Kind::integer) {
        return [value = std::move(value), key = primary()](const Scope& scope) {
            return item(value(scope), key(scope));
        };
    }
    const std::string name = this->name("the name of an attribute");
    if (!peek().is("(")) {
        return counted([value = std::move(value), name](const Scope& scope) {
            return attribute(value(scope), name);
        });
    }
    return counted([value = std::move(value), name, arguments = call()](const Scope& scope) {
        const Value object = value(scope);
        minja::ArgumentsValue given = arguments.evaluate(scope);
        return call_method(object, name, given, scope);
    });
}

Code ExpressionParser::subscript(Code value) {
    std::array<Code, 3> parts;
    size_t n = 0;
    bool is_slice = false;
    while (!peek().is("]")) {
        if (skip(":")) {
            is_slice = true;
            if (++n > 2) error("a slice has at most three parts");
        } else if (parts.at(n)) {
            error("expected ]");
        } else {
            parts.at(n) = expression();
        }
    }
    expect("]");
    if (!is_slice) {
        if (!parts[0]) error("expected a value between the brackets");
        return counted([value = std::move(value), key = std::move(parts[0])](const Scope& scope) {
            const Value object = value(scope);
            return item(object, key(scope));
        });
    }
    for (Code& part : parts) {
        if (!part) part = constant({});
    }
    return counted([value = std::move(value), parts = std::move(parts)](const Scope& scope) {
        const Value object = value(scope);
        Value result = slice(object, parts[0](scope), parts[1](scope), parts[2](scope));
        if (!is_undefined(result)) budget_of(scope).bytes(result.size());
        return result;
    });
}

CallCode ExpressionParser::call() {
    const Level level(*this);
    CallCode result;
    expect("(");
    while (!skip(")")) {
        CallCode::Argument argument;
        if (skip("**")) {
            argument.stars = 2;
        } else if (skip("*")) {
            argument.stars = 1;
        } else if (peek().kind == Token::Kind::name && tokens_[pos_ + 1].is("=")) {
            argument.name = tokens_[pos_].text;
            pos_ += 2;
        }
        argument.value = expression();
        result.arguments.push_back(std::move(argument));
        if (!peek().is(")")) expect(",");
    }
    if (passes_caller_ && peek().kind == Token::Kind::end) {
        result.arguments.push_back({.name = "caller", .value = [](const Scope& scope) {
                                        return scope->at(Value(caller_variable));
                                    }});
        passes_caller_ = false;
    }
    return result;
}

Code ExpressionParser::call_with_caller() {
    passes_caller_ = true;
    Code value = expression();
    if (passes_caller_) error("a call block needs a call");
    return value;
}

Code ExpressionParser::filters(Code value) {
    for (;;) {
        if (skip("|")) {
            value = one_filter(std::move(value));
        } else if (skip("is")) {
            value = test(std::move(value));
        } else {
            return value;
        }
    }
}

Code ExpressionParser::filter_chain(Code value) {
    value = one_filter(std::move(value));
    while (skip("|")) value = one_filter(std::move(value));
    return value;
}

Code ExpressionParser::not_there(std::string_view kind, const std::string& name) {
    std::string what = fmt::format("there is no {} {}", kind, name);
    missing_.push_back(fmt::format("line {}: {}", line_of(source_, peek().pos), what));
    return [what = std::move(what)](const Scope&) -> Value { throw Abort{what}; };
}

Code ExpressionParser::one_filter(Code value) {
    const std::string name = this->name("the name of a filter");
    const Filter filter = find_filter(name);
    if (!filter) {
        Code fails = not_there("filter", name);
        if (peek().is("(")) call();
        return fails;
    }
    const CallCode arguments = peek().is("(") ? call() : CallCode();
    return counted([value = std::move(value), filter, arguments](const Scope& scope) {
        const Value first = value(scope);
        minja::ArgumentsValue given = arguments.evaluate(scope);
        given.args.insert(given.args.begin(), first);
        return filter(scope, given, budget_of(scope));
    });
}

Code ExpressionParser::test(Code value) {
    const bool negated = skip("not");
    const std::string name = this->name("the name of a test");
    const Predicate predicate = find_test(name);
    const Code fails = predicate ? Code() : not_there("test", name);
    CallCode arguments;
    const Token& next = peek();
    static constexpr std::array<std::string_view, 6> words{"else", "or", "and", "is", "if", "not"};
    const bool word = next.kind == Token::Kind::name &&
                      std::ranges::find(words, next.text) == words.end() && next.text != "in" &&
                      next.text != "recursive";
    if (next.is("(")) {
        arguments = call();
    } else if (word || next.kind == Token::Kind::text || next.kind == Token::Kind::integer ||
               next.kind == Token::Kind::real || next.is("[") || next.is("{")) {
        arguments.arguments.push_back({.value = postfix(primary())});
    }
    if (fails) return fails;
    return counted([value = std::move(value), predicate, arguments, negated](const Scope& scope) {
        const Value first = value(scope);
        minja::ArgumentsValue given = arguments.evaluate(scope);
        given.args.insert(given.args.begin(), first);
        return Value(predicate(given) != negated);
    });
}

Target ExpressionParser::target(bool with_attribute) {
    const auto one = [&]() -> Target {
        const Level level(*this);
        if (skip("(")) {
            Target inner = target(with_attribute);
            expect(")");
            return inner;
        }
        Target result{.name = name("a name")};
        if (is_constant_name(result.name)) error("a constant cannot be assigned to");
        if (with_attribute && skip(".")) result.attribute = name("the name of an attribute");
        return result;
    };
    Target first = one();
    if (!peek().is(",")) return first;
    Target all;
    all.parts.push_back(std::move(first));
    while (skip(",")) {
        if (peek().kind != Token::Kind::name && !peek().is("(")) break;
        if (peek().is("in")) break;
        all.parts.push_back(one());
    }
    return all;
}

std::vector<std::pair<std::string, Code>> ExpressionParser::signature() {
    std::vector<std::pair<std::string, Code>> parameters;
    expect("(");
    while (!skip(")")) {
        std::string parameter = name("the name of a parameter");
        parameters.emplace_back(std::move(parameter), skip("=") ? expression() : Code());
        if (!peek().is(")")) expect(",");
    }
    return parameters;
}

}  // namespace pleat::jinja
