#include "jinja/template.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "jinja/nodes.h"

namespace pleat::jinja {
namespace {

constexpr size_t max_source = 128 << 10;
constexpr int max_blocks = 100;  ///< open at a time
constexpr size_t max_prompt = size_t{16} << 20;

/// Reads the statements.
class Parser {
  public:
    Parser(std::string_view source, std::vector<std::string>& missing)
        : source_(source), pieces_(lex(source)), missing_(missing) {}

    Node run() {
        Node all = body({});
        if (pos_ < pieces_.size()) error(pieces_[pos_], fmt::format("unexpected {}", word()));
        return all;
    }

  private:
    using Ends = std::vector<std::string_view>;

    [[noreturn]] void error(const Piece& piece, std::string_view message) const {
        fail_at(source_, piece.pos, message);
    }

    /// The statement that comes next; empty when it is no statement.
    std::string word() const {
        const Piece& piece = pieces_[pos_];
        if (piece.kind != Piece::Kind::statement) return {};
        if (piece.tokens[0].kind != Token::Kind::name) error(piece, "expected a statement");
        return piece.tokens[0].text;
    }

    size_t line(const Piece& piece) const { return line_of(source_, piece.pos); }

    ExpressionParser expressions(const Piece& piece, bool after_word = true) {
        ExpressionParser parser(source_, piece.tokens, missing_);
        if (after_word) parser.skip(piece.tokens[0].text);
        return parser;
    }

    void note(const ExpressionParser& parser) {
        loop_used_ = std::max(loop_used_, parser.uses_loop());
    }

    /// Up to one of these statements, which is left to be read.
    Node body(const Ends& ends) {
        if (++depth_ > max_blocks + 1) {
            error(pieces_[std::min(pos_, pieces_.size() - 1)],
                  fmt::format("more than {} blocks open", max_blocks));
        }
        std::vector<Node> nodes;
        while (pos_ < pieces_.size()) {
            const Piece& piece = pieces_[pos_];
            if (piece.kind == Piece::Kind::text) {
                nodes.push_back(make_text(piece.text));
                ++pos_;
            } else if (piece.kind == Piece::Kind::print) {
                ExpressionParser parser = expressions(piece, false);
                nodes.push_back(make_print(line(piece), parser.tuple()));
                parser.end();
                note(parser);
                ++pos_;
            } else if (std::ranges::find(ends, word()) != ends.end()) {
                break;
            } else if (Node node = statement()) {
                nodes.push_back(std::move(node));
            }
        }
        --depth_;
        return make_sequence(std::move(nodes));
    }

    /// The body of a block that `open` begins, and its end.
    Node block(const Piece& open, std::string_view end) {
        Node all = body({end});
        close(open, end);
        return all;
    }

    void close(const Piece& open, std::string_view end) {
        if (pos_ >= pieces_.size())
            error(open, fmt::format("{} without its {}", open.tokens[0].text, end));
        ++pos_;
    }

    Node statement() {
        const Piece& piece = pieces_[pos_];
        const std::string what = word();
        ExpressionParser parser = expressions(piece);
        ++pos_;
        if (what == "if") return if_statement(piece);
        if (what == "for") return for_statement(piece, parser);
        if (what == "set") return set_statement(piece, parser);
        if (what == "macro") return macro_statement(piece, parser);
        if (what == "call") return call_statement(piece, parser);
        if (what == "filter") return filter_statement(piece, parser);
        if (what == "with") return with_statement(piece, parser);
        if (what == "break" || what == "continue") {
            if (loops_ == 0) error(piece, what + " outside of a loop");
            parser.end();
            return make_loop_control(what == "break");
        }
        if (what == "generation") {
            // Marks what a model says, for training.
            parser.end();
            return block(piece, "endgeneration");
        }
        if (what.starts_with("end") || what == "else" || what == "elif") {
            error(piece, fmt::format("unexpected {}", what));
        }
        error(piece, fmt::format("statement {} is not supported", what));
    }

    Node if_statement(const Piece& open) {
        std::vector<Branch> branches;
        --pos_;
        for (;;) {
            const Piece& piece = pieces_[pos_];
            ExpressionParser parser = expressions(piece);
            const bool is_else = word() == "else";
            Branch branch{.line = line(piece)};
            if (!is_else) branch.condition = parser.tuple();
            parser.end();
            note(parser);
            ++pos_;
            branch.body = is_else ? body({"endif"}) : body({"elif", "else", "endif"});
            branches.push_back(std::move(branch));
            if (pos_ >= pieces_.size()) error(open, "if without its endif");
            if (word() == "endif") break;
        }
        ++pos_;
        return make_if(std::move(branches));
    }

    Node for_statement(const Piece& open, ExpressionParser& parser) {
        Loop loop{.line = line(open), .target = parser.target(false)};
        parser.expect("in");
        loop.items = parser.tuple(false);
        note(parser);
        // Of the items it is the outer loop's.
        const LoopUse outer_used =
            std::max(std::exchange(loop_used_, LoopUse::none), parser.uses_loop());
        if (parser.skip("if")) loop.condition = parser.expression();
        if (parser.peek().is("recursive")) error(open, "recursive loops are not supported");
        parser.end();
        ++loops_;
        loop.body = body({"else", "endfor"});
        --loops_;
        loop.uses = std::exchange(loop_used_, outer_used);
        if (pos_ < pieces_.size() && word() == "else") {
            ++pos_;
            loop.otherwise = body({"endfor"});
        }
        close(open, "endfor");
        return make_for(std::move(loop));
    }

    Node set_statement(const Piece& open, ExpressionParser& parser) {
        Target target = parser.target(true);
        if (parser.skip("=")) {
            Code value = parser.tuple();
            parser.end();
            note(parser);
            return make_set(line(open), std::move(target), std::move(value));
        }
        Code filtered = block_filter(parser);
        return make_set_block(line(open), std::move(target), block(open, "endset"),
                              std::move(filtered));
    }

    /// `| filter | filter` behind what names the block; nothing when there is none.
    Code block_filter(ExpressionParser& parser) {
        Code filtered;
        if (parser.skip("|")) filtered = parser.filter_chain(block_text());
        parser.end();
        note(parser);
        return filtered;
    }

    static Code block_text() {
        return [](const Scope& scope) { return scope->at(Value("")); };
    }

    Node macro_statement(const Piece& open, ExpressionParser& parser) {
        Macro macro{.line = line(open), .name = parser.name("the name of the macro")};
        macro.parameters = parser.signature();
        parser.end();
        macro.body = macro_body(open, "endmacro");
        return make_macro(std::move(macro));
    }

    /// In it no loop is open.
    Node macro_body(const Piece& open, std::string_view end) {
        const int loops = std::exchange(loops_, 0);
        Node result = block(open, end);
        loops_ = loops;
        return result;
    }

    Node call_statement(const Piece& open, ExpressionParser& parser) {
        Macro caller{.line = line(open), .name = "caller"};
        if (parser.peek().is("(")) caller.parameters = parser.signature();
        Code call = parser.call_with_caller();
        parser.end();
        note(parser);
        caller.body = macro_body(open, "endcall");
        return make_call(std::move(caller), std::move(call));
    }

    Node filter_statement(const Piece& open, ExpressionParser& parser) {
        Code filtered = parser.filter_chain(block_text());
        parser.end();
        note(parser);
        return make_filter_block(line(open), block(open, "endfilter"), std::move(filtered));
    }

    Node with_statement(const Piece& open, ExpressionParser& parser) {
        std::vector<std::pair<Target, Code>> variables;
        while (parser.peek().kind != Token::Kind::end) {
            if (!variables.empty()) parser.expect(",");
            Target target{.name = parser.name("a name")};
            parser.expect("=");
            variables.emplace_back(std::move(target), parser.expression());
        }
        note(parser);
        return make_with(line(open), std::move(variables), block(open, "endwith"));
    }

    std::string_view source_;
    std::vector<Piece> pieces_;
    std::vector<std::string>& missing_;
    size_t pos_ = 0;
    int depth_ = 0;
    int loops_ = 0;
    LoopUse loop_used_ = LoopUse::none;  ///< the name `loop`, since the innermost loop began
};

}  // namespace

struct Template::Program {
    Node root = {};
    std::vector<std::string> missing = {};
};

Template::Template(std::string source) {
    if (source.size() > max_source) {
        fail("chat template: {} bytes, at most {}", source.size(), max_source);
    }
    // As Jinja reads files.
    for (size_t at = 0; (at = source.find("\r\n", at)) != std::string::npos;) source.erase(at, 1);
    auto program = std::make_unique<Program>();
    program->root = Parser(source, program->missing).run();
    program_ = std::move(program);
}

Template::~Template() = default;
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;

const std::vector<std::string>& Template::missing() const { return program_->missing; }

std::string Template::render(const nlohmann::ordered_json& variables) const {
    Rendering rendering;
    const auto scope = std::make_shared<RenderScope>(rendering, nullptr);
    const auto take_apart = [&](RenderScope*) {
        for (const auto& weak : rendering.with_macros) {
            if (const auto holder = weak.lock()) static_cast<RenderScope&>(*holder).clear();
        }
        for (Value& grown : rendering.grown_lists) {
            while (grown.size() > 0) grown.erase(grown.size() - 1);
        }
        for (auto& [mapping, attribute] : rendering.set_attributes) mapping.set(attribute, {});
    };
    const std::unique_ptr<RenderScope, decltype(take_apart)> guard(scope.get(), take_apart);
    try {
        add_globals(scope);
        for (const auto& [name, value] : variables.items()) {
            scope->set(Value(name), from_json(value));
        }
        std::string prompt = program_->root->render(scope);
        if (prompt.size() > max_prompt) {
            throw Abort{fmt::format("renders {} bytes, at most {}", prompt.size(), max_prompt)};
        }
        return prompt;
    } catch (const Abort& abort) {
        std::string_view reason = abort.reason;
        reason = reason.substr(0, reason.find('\n'));
        fail("chat template: {}", reason.substr(0, 500));
    } catch (const minja::LoopControlException&) {
        fail("chat template: break or continue outside of a loop");
    }
}

}  // namespace pleat::jinja
