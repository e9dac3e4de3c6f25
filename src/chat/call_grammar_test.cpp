#include "chat/call_grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "chat/chat_parser.h"
#include "schema/unfold.h"
#include "text/demo_model_for_test.h"
#include "text/sampler.h"

namespace pleat {
namespace {

using test::demo_tokenizer;
using test::message_of;
using testing::HasSubstr;
using Json = nlohmann::ordered_json;

const ReasoningMarks think{"<think>", "</think>"};

std::vector<Tool> tools_of(std::string_view json) { return read_tools(Json::parse(json)); }

const std::vector<Tool> tools = tools_of(R"([
    {"type": "function", "function": {"name": "get_weather", "parameters": {
        "type": "object", "properties": {
            "city": {"type": "string", "description": "where"},
            "unit": {"type": "string", "enum": ["c", "f"]},
            "days": {"type": "integer", "minimum": 1, "maximum": 14},
            "code": {"type": "string", "pattern": "^[A-Z]{2}$"},
            "near": {"type": "array", "items": {"type": "object", "properties": {
                "x": {"type": "number"}, "text": {"type": "string"}}, "required": ["x"]}},
            "exact": {"anyOf": [{"type": "boolean"}, {"$ref": "#/$defs/level"}]}},
        "required": ["city", "days"],
        "$defs": {"level": {"type": "integer"}}}}},
    {"type": "function", "function": {"name": "stop"}}])");

ChatSyntax syntax_of(ToolForm form) {
    return {.tools = form,
            .reasoning = think,
            .tool_names = {"get_weather", "stop"},
            .text_parameters = text_parameters(tools)};
}

/// Whether the constraint takes a whole text and lets it end there.
bool takes(const GrammarConstraint& constraint, const std::string& text) {
    Sampler sampler({.constraint = constraint}, demo_tokenizer());
    for (const int32_t token : demo_tokenizer().tokenize(text, false, true)) {
        if (!sampler.fits_grammar(token)) return false;
        sampler.accept(token);
    }
    return sampler.fits_grammar(demo_tokenizer().eos());
}

/// A token that begins with the next byte of `mark` behind what of it stands at the end of `text`.
int32_t next_of(const std::string& mark, const std::string& text) {
    size_t n = std::min(mark.size() - 1, text.size());
    while (n > 0 && !text.ends_with(mark.substr(0, n))) --n;
    return demo_tokenizer().tokenize(mark.substr(n, 1), false, false).front();
}

/// What a model that babbles says under a constraint. Every now and then it wants to write one of
/// the ends of texts, so that it comes to an end.
std::string sampled(const GrammarConstraint& constraint, uint32_t seed) {
    static const std::vector<std::string> ends{
        "\"", "}", "]", "</parameter>", "<|\"|>", "</think>", "<tool_call>", "<|tool_call>", ""};
    std::mt19937 rng(seed);
    std::normal_distribution<float> normal(0.0F, 3.0F);
    Sampler sampler({.seed = seed, .constraint = constraint}, demo_tokenizer());
    std::string text;
    std::string wanted;
    for (int i = 0; i < 2000; ++i) {
        if (i % 15 == 0) wanted = ends[rng() % ends.size()];
        std::vector<float> logits(static_cast<size_t>(demo_tokenizer().n_vocab()));
        for (float& logit : logits) logit = normal(rng);
        if (i % 15 > 2) {
            const int32_t next = wanted.empty() ? demo_tokenizer().eos() : next_of(wanted, text);
            logits[static_cast<size_t>(next)] += 30.0F;
        }
        const int32_t token = sampler.sample(logits);
        sampler.accept(token);
        if (demo_tokenizer().is_eog(token)) return text;
        text += demo_tokenizer().piece(token, true);
    }
    ADD_FAILURE() << "no end: " << text;
    return text;
}

void expect_valid(const ToolCall& call) {
    const Json arguments = Json::parse(call.arguments, nullptr, false);
    ASSERT_TRUE(arguments.is_object()) << call.arguments;
    for (const Tool& tool : tools) {
        if (tool.name != call.name) continue;
        static const SchemaLimits limits;
        Unfolder schema(tool.parameters, limits);
        EXPECT_TRUE(schema.allows(std::vector<SchemaPart>{schema.root()}, arguments))
            << call.arguments;
        return;
    }
    ADD_FAILURE() << "no tool " << call.name;
}

class ToolForms : public testing::TestWithParam<ToolForm> {};

INSTANTIATE_TEST_SUITE_P(All, ToolForms,
                         testing::Values(ToolForm::hermes, ToolForm::qwen35, ToolForm::llama3,
                                         ToolForm::gemma4));

TEST_P(ToolForms, GiveAValidCallWhateverTheModelLikes) {
    const ToolForm form = GetParam();
    const GrammarConstraint constraint = call_constraint({.form = form, .tools = tools});
    for (uint32_t seed = 0; seed < 15; ++seed) {
        SCOPED_TRACE(seed);
        const std::string text = sampled(constraint, seed);
        SCOPED_TRACE(text);
        const ChatAnswer answer = parse_answer(syntax_of(form), seed, text);
        EXPECT_EQ(answer.content, "");
        ASSERT_EQ(answer.calls.size(), 1U);
        expect_valid(answer.calls[0]);
    }
}

TEST_P(ToolForms, GiveTheNamedToolOnly) {
    const ToolForm form = GetParam();
    const GrammarConstraint constraint = call_constraint({.form = form, .tools = {tools[1]}});
    const ChatAnswer answer = parse_answer(syntax_of(form), 1, sampled(constraint, 7));
    ASSERT_EQ(answer.calls.size(), 1U);
    EXPECT_EQ(answer.calls[0].name, "stop");
    EXPECT_EQ(answer.calls[0].arguments, "{}");
}

TEST_P(ToolForms, GiveSeveralCallsWhenTheyMay) {
    const ToolForm form = GetParam();
    const GrammarConstraint constraint =
        call_constraint({.form = form, .tools = {tools[1]}, .parallel = true});
    size_t most = 0;
    for (uint32_t seed = 0; seed < 20; ++seed) {
        const ChatAnswer answer = parse_answer(syntax_of(form), 1, sampled(constraint, seed));
        EXPECT_EQ(answer.content, "");
        most = std::max(most, answer.calls.size());
    }
    EXPECT_EQ(most > 1, form != ToolForm::llama3) << most;
}

TEST_P(ToolForms, LeaveTextFreeWhenCallsAreOptional) {
    const GrammarConstraint constraint =
        call_constraint({.form = GetParam(), .tools = tools, .optional = true});
    for (const std::string text : {"", "Hi.\n\n", "{", "{ }", "{\"nam", "{\"city\": 1}",
                                   "a {\"name\": 2", "<tool", "<|tool_cal", "\xE2\x82\xAC"}) {
        EXPECT_TRUE(takes(constraint, text)) << text;
    }
    size_t n_calls = 0;
    for (uint32_t seed = 0; seed < 20; ++seed) {
        SCOPED_TRACE(seed);
        const ChatAnswer answer = parse_answer(syntax_of(GetParam()), 1, sampled(constraint, seed));
        n_calls += answer.calls.size();
        for (const ToolCall& call : answer.calls) expect_valid(call);
    }
    EXPECT_TRUE(n_calls > 2 || GetParam() == ToolForm::llama3) << n_calls;
}

TEST_P(ToolForms, MayFollowReasoning) {
    const ToolForm form = GetParam();
    for (const bool open : {false, true}) {
        const GrammarConstraint constraint =
            after_reasoning(call_constraint({.form = form, .tools = tools}), think, open, false);
        ChatSyntax syntax = syntax_of(form);
        syntax.reasoning_open = open;
        for (uint32_t seed = 0; seed < 5; ++seed) {
            SCOPED_TRACE(seed);
            const std::string text = sampled(constraint, seed);
            SCOPED_TRACE(text);
            const ChatAnswer answer = parse_answer(syntax, seed, text);
            EXPECT_EQ(answer.content, "");
            ASSERT_EQ(answer.calls.size(), 1U);
            expect_valid(answer.calls[0]);
        }
    }
}

TEST(CallGrammar, TakesWhatModelsWrite) {
    const auto constraint = [](ToolForm form) {
        return call_constraint({.form = form, .tools = tools, .parallel = true});
    };
    EXPECT_TRUE(takes(constraint(ToolForm::hermes),
                      "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Ulm\", "
                      "\"days\": 3}}\n</tool_call>\n<tool_call>\n{\"name\": \"stop\", "
                      "\"arguments\": {}}\n</tool_call>"));
    EXPECT_TRUE(takes(constraint(ToolForm::qwen35),
                      "<tool_call>\n<function=get_weather>\n<parameter=city>\nUlm\n</parameter>\n"
                      "<parameter=unit>\nc\n</parameter>\n<parameter=days>\n3\n</parameter>\n"
                      "</function>\n</tool_call>\n<tool_call>\n<function=stop>\n</function>\n"
                      "</tool_call>"));
    EXPECT_TRUE(takes(constraint(ToolForm::llama3),
                      R"({"name": "get_weather", "parameters": {"city": "Ulm", "days": 14}})"));
    EXPECT_TRUE(takes(constraint(ToolForm::gemma4),
                      "<|tool_call>call:get_weather{city:<|\"|>Ulm<|\"|>,days:3,near:[{text:"
                      "<|\"|>a<|\"|>,x:1.5}],unit:<|\"|>c<|\"|>}<tool_call|><|tool_call>call:stop{}"
                      "<tool_call|>"));
    EXPECT_FALSE(takes(constraint(ToolForm::hermes), "Hi"));
    EXPECT_FALSE(takes(constraint(ToolForm::llama3),
                       R"({"name": "get_weather", "parameters": {"city": "Ulm", "days": 15}})"));
    EXPECT_FALSE(takes(constraint(ToolForm::qwen35),
                       "<tool_call>\n<function=get_weather>\n<parameter=city>\nUlm\n</parameter>\n"
                       "</function>\n</tool_call>"));
}

TEST(CallGrammar, OfLlama3SetsCallsApartByTheirBeginning) {
    const GrammarConstraint constraint =
        call_constraint({.form = ToolForm::llama3, .tools = tools, .optional = true});
    EXPECT_TRUE(takes(constraint, "{\"name\": \"stop\", \"parameters\": {}}"));
    EXPECT_TRUE(takes(constraint, "Well: {\"name\": \"Bob\"}"));
    EXPECT_TRUE(takes(constraint, "a<|python_tag|>{\"name\": \"stop\", \"parameters\": {}}"));
    EXPECT_FALSE(takes(constraint, "{\"name\": \"Bob\"}"));
    EXPECT_FALSE(takes(constraint, " { \"name\""));
    EXPECT_FALSE(takes(constraint, "a<|python_tag|>b"));
}

TEST(CallGrammar, RefusesSchemasThatItCannotHold) {
    const auto bad = tools_of(R"([{"function": {"name": "f", "parameters":
        {"type": "object", "properties": {"a": {"type": "string", "frobnicate": 1}}}}}])");
    const auto wide = tools_of(R"([{"function": {"name": "f", "parameters":
        {"type": "object", "properties": {"a": {"type": "string"}}, "minProperties": 1}}}])");
    for (const ToolForm form :
         {ToolForm::hermes, ToolForm::qwen35, ToolForm::llama3, ToolForm::gemma4}) {
        EXPECT_THAT(message_of([&] { call_constraint({.form = form, .tools = bad}); }),
                    testing::AllOf(HasSubstr("of f: "), HasSubstr("frobnicate")));
    }
    EXPECT_THAT(message_of([&] { call_constraint({.form = ToolForm::qwen35, .tools = wide}); }),
                HasSubstr("this model writes the arguments one by one"));
}

}  // namespace
}  // namespace pleat
