#include "chat/call_grammar.h"

#include "base/error.h"
#include "chat/call_reader.h"
#include "chat/gemma4_grammar.h"
#include "chat/qwen35_grammar.h"
#include "schema/grammar_text.h"
#include "schema/json_schema.h"
#include "text/free_text.h"

namespace pleat {
namespace {

std::string literal(std::string_view text) { return GrammarText::literal(text); }

std::string schema_rule(GrammarText& grammar, const Tool& tool) {
    try {
        return add_json_schema(grammar, tool.parameters);
    } catch (const Error& e) {
        fail("tools: parameters of {}: {}", tool.name, e.what());
    }
}

/// {"name": "x", "arguments": {...}} of any of the tools.
std::string add_json_calls(GrammarText& grammar, const std::vector<Tool>& tools,
                           std::string_view arguments_key) {
    std::string either;
    for (const Tool& tool : tools) {
        const std::string head =
            fmt::format("{{\"name\": \"{}\", \"{}\": ", tool.name, arguments_key);
        const std::string rule =
            grammar.add("call-json", literal(head) + " " + schema_rule(grammar, tool) + " \"}\"");
        either += (either.empty() ? "" : " | ") + rule;
    }
    return grammar.add("call-of-any", either);
}

std::string add_call(GrammarText& grammar, const CallGrammar& calls) {
    switch (calls.form) {
        case ToolForm::hermes:
            return grammar.add("call", literal("<tool_call>") + " \"\\n\"? " +
                                           add_json_calls(grammar, calls.tools, "arguments") +
                                           " \"\\n\"? " + literal("</tool_call>"));
        case ToolForm::qwen35:
            return add_qwen35_call(grammar, calls.tools);
        case ToolForm::llama3:
            return add_json_calls(grammar, calls.tools, "parameters");
        case ToolForm::gemma4:
            return add_gemma4_call(grammar, calls.tools);
        case ToolForm::none:
            break;
    }
    fail("no form of tool calls");
}

/// Text that does not begin like a call of Llama 3, which no mark sets apart.
void add_llama3_text(GrammarText& grammar, const std::string& call) {
    const std::string tag = "<|python_tag|>";
    const std::string tagged = literal(tag) + " lead " + call;
    const std::vector<std::string> marks{tag};
    for (const GrammarRule& rule : free_text_rules("any", marks, "", "\"\" | " + tagged)) {
        grammar.define(grammar.reserve(rule.name), rule.body);
    }
    // Any text that does not begin with these: its first character may be the tag's.
    const auto other_than = [](const std::string& characters) {
        return fmt::format("\"\" | [^<{}] any-0 | \"<\" any-1", characters);
    };
    const std::string space = "[ \\t\\n]";
    static constexpr std::string_view start = "{\"name\"";
    for (size_t i = 0; i < start.size(); ++i) {
        const std::string c = start[i] == '"' ? "\\\"" : std::string(1, start[i]);
        std::string body = other_than(i < 2 ? c + " \\t\\n" : c);
        if (i < 2) body += fmt::format(" | {} start-{}", space, i);
        if (i == 0) body += " | " + tagged;
        if (i + 1 < start.size()) body += fmt::format(" | \"{}\" start-{}", c, i + 1);
        grammar.define(grammar.reserve(fmt::format("start-{}", i)), body);
    }
}

}  // namespace

GrammarConstraint call_constraint(const CallGrammar& calls) {
    GrammarText grammar;
    grammar.add("lead", "[ \\t\\n]{0,4}");
    const std::string call = add_call(grammar, calls);
    // Llama 3's template refuses several calls in one message.
    const bool several = calls.parallel && calls.form != ToolForm::llama3;
    const std::string all = several ? fmt::format("{0} (\"\\n\"? {0})*", call) : call;
    if (!calls.optional) {
        grammar.add("root", "lead " + all + " lead");
        return {grammar.text()};
    }
    if (calls.form == ToolForm::llama3) {
        add_llama3_text(grammar, call);
        grammar.add("root", "lead " + call + " lead | start-0");
        return {grammar.text()};
    }
    grammar.add("root", all + " lead");
    return {grammar.text(), "root", {call_marks(calls.form).front()}};
}

GrammarConstraint after_reasoning(const GrammarConstraint& given, const ReasoningMarks& marks,
                                  bool open, bool may_end) {
    const GrammarConstraint answer = given.triggers.empty() ? given : eager_constraint(given);
    std::string prefix = "reasoning";
    while (answer.text.find(prefix) != std::string::npos) prefix += "-x";
    const std::string begin = prefix + "-begin";
    const std::string after = fmt::format("[ \\t\\n]{{0,8}} {}", answer.root);
    GrammarConstraint result{.text = answer.text + "\n", .root = begin};
    const std::string reasoning = fmt::format("{}-0", prefix);
    const std::string opening =
        fmt::format("[ \\t\\n]{{0,4}} {} {}", GrammarText::literal(marks.open), reasoning);
    result.text += open ? fmt::format("{} ::= {}\n", begin, reasoning)
                        : fmt::format("{} ::= {} | {}\n", begin, opening, answer.root);
    const std::vector<std::string> close{marks.close};
    for (const GrammarRule& rule : free_text_rules(prefix, close, after, may_end ? "\"\"" : "")) {
        result.text += fmt::format("{} ::= {}\n", rule.name, rule.body);
    }
    return result;
}

}  // namespace pleat
