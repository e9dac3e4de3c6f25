#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "jinja/expression_parser.h"
#include "jinja/scope.h"

namespace pleat::jinja {

using Node = std::shared_ptr<minja::TemplateNode>;

// Statements, for those of minja whose scopes or values differ from Python's. `line` is of the tag,
// for messages.

Node make_text(std::string text);
Node make_sequence(std::vector<Node> nodes);
Node make_print(size_t line, Code code);

struct Branch {
    size_t line = 0;
    Code condition = {};  ///< empty: else
    Node body = {};
};
Node make_if(std::vector<Branch> branches);

struct Loop {
    size_t line = 0;
    Target target = {};
    Code items = {};
    Code condition = {};  ///< empty: all
    Node body = {};
    Node otherwise = {};  ///< may be null
    LoopUse uses = LoopUse::none;
};
Node make_for(Loop loop);
Node make_loop_control(bool breaks);

Node make_set(size_t line, Target target, Code value);
/// What the body renders, through filters when `filtered` is given: it reads the variable "".
Node make_set_block(size_t line, Target target, Node body, Code filtered);
Node make_filter_block(size_t line, Node body, Code filtered);
Node make_with(size_t line, std::vector<std::pair<Target, Code>> variables, Node body);

struct Macro {
    size_t line = 0;
    std::string name = {};
    std::vector<std::pair<std::string, Code>> parameters = {};
    Node body = {};
};
Node make_macro(Macro macro);
/// {% call(parameters) function(...) %}: `call` sees the body as the variable caller.
Node make_call(Macro caller, Code call);

}  // namespace pleat::jinja
