#include "serve/chat_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/request_error_for_test.h"
#include "text/demo_model_for_test.h"

namespace pleat {
namespace {

using nlohmann::ordered_json;
using test::json;
using test::Refusal;
using test::refusal_of;

ChatRequest read_all(const std::string& text, const ChatDefaults& defaults = {}) {
    const ordered_json object = json(text);
    return chat_fields(Fields(object), defaults, {});
}

const std::string hello = R"("messages": [{"role": "user", "content": "Hello"}])";
const std::string tool =
    R"("tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}])";

/// With a conversation and these fields.
ChatRequest read(const std::string& more, const ChatDefaults& defaults = {}) {
    return read_all("{" + hello + (more.empty() ? "" : ", ") + more + "}", defaults);
}

TEST(ChatFields, HaveDefaults) {
    const ChatRequest request = read("");
    EXPECT_EQ(request.messages, json(R"([{"role": "user", "content": "Hello"}])"));
    EXPECT_TRUE(request.tools.empty());
    EXPECT_EQ(request.tool_choice, ToolChoice::automatic);
    EXPECT_FALSE(request.parallel_tool_calls);
    EXPECT_EQ(request.template_arguments, ordered_json::object());
    EXPECT_TRUE(request.add_generation_prompt);
    EXPECT_EQ(request.reasoning, ReasoningFormat::separate);
    EXPECT_TRUE(request.continue_answer);
    EXPECT_FALSE(read("", {.continue_answers = false}).continue_answer);
    EXPECT_EQ(request.grammar, "");
}

TEST(ChatFields, AreReadIntoTheirMembers) {
    const ChatRequest request =
        read(tool + R"(, "tool_choice": {"type": "function", "function": {"name": "f"}},
             "parallel_tool_calls": true, "add_generation_prompt": false,
             "reasoning_format": "none", "chat_template_kwargs": {"enable_thinking": false},
             "reasoning_effort": "low")",
             {.template_arguments = json(R"({"enable_thinking": true, "other": 1})")});
    EXPECT_EQ(request.tools.size(), 1U);
    EXPECT_EQ(request.tool_choice, ToolChoice::named);
    EXPECT_EQ(request.tool_name, "f");
    EXPECT_TRUE(request.parallel_tool_calls);
    EXPECT_FALSE(request.add_generation_prompt);
    EXPECT_EQ(request.reasoning, ReasoningFormat::none);
    EXPECT_EQ(request.template_arguments.at("enable_thinking"), false);
    EXPECT_EQ(request.template_arguments.at("other"), 1);
    EXPECT_EQ(request.template_arguments.at("reasoning_effort"), "low");
}

TEST(ChatFields, ToolsAreChosenByWords) {
    EXPECT_EQ(read(tool + R"(, "tool_choice": "none")").tool_choice, ToolChoice::none);
    EXPECT_EQ(read(tool + R"(, "tool_choice": "auto")").tool_choice, ToolChoice::automatic);
    EXPECT_EQ(read(tool + R"(, "tool_choice": "required")").tool_choice, ToolChoice::required);
}

TEST(ChatFields, ReasoningFormatsAreLlamaServers) {
    EXPECT_EQ(read(R"("reasoning_format": "auto")").reasoning, ReasoningFormat::separate);
    EXPECT_EQ(read(R"("reasoning_format": "deepseek")").reasoning, ReasoningFormat::separate);
    EXPECT_EQ(read("", {.reasoning = ReasoningFormat::none}).reasoning, ReasoningFormat::none);
}

TEST(ChatFields, AConstraintGoesWithToolsOnlyWhenNoneMayBeCalled) {
    const std::string grammar = R"(, "grammar": "root ::= \"a\"")";
    EXPECT_EQ(read(tool + R"(, "tool_choice": "none")" + grammar).grammar, "root ::= \"a\"");
    EXPECT_EQ(refusal_of([&] { read(tool + grammar); }).param, "tools");
    EXPECT_EQ(
        refusal_of([&] { read(tool + R"(, "response_format": {"type": "json_object"})"); }).param,
        "tools");
}

TEST(ChatFields, TheNewNameOfTheSystemIsTheOldOne) {
    const ChatRequest request =
        read_all(R"({"messages": [{"role": "developer", "content": "Be short."}]})");
    EXPECT_EQ(request.messages.at(0).at("role"), "system");
}

TEST(ChatFields, OfMessagesNameWhatIsWrong) {
    struct Case {
        std::string messages;
        std::string param;
    };
    const std::vector<Case> cases{
        {"null", "messages"},
        {"[]", "messages"},
        {"\"hi\"", "messages"},
        {"[\"hi\"]", "messages[0]"},
        {R"([{"content": "a"}])", "messages[0].role"},
        {R"([{"role": 1, "content": "a"}])", "messages[0].role"},
        {R"([{"role": "", "content": "a"}])", "messages[0].role"},
        {R"([{"role": "user"}])", "messages[0].content"},
        {R"([{"role": "user", "content": 1}])", "messages[0].content"},
        {R"([{"role": "user", "content": {}}])", "messages[0].content"},
        {R"([{"role": "user", "content": ["a"]}])", "messages[0].content[0]"},
        {R"([{"role": "user", "content": [{"type": "text"}]}])", "messages[0].content[0].text"},
        {R"([{"role": "user", "content": [{"type": "text", "text": "a"},
             {"type": "image_url", "image_url": {"url": "x"}}]}])",
         "messages[0].content[1].type"},
        {R"([{"role": "user", "content": "a"}, {"role": "assistant", "tool_calls": 1}])",
         "messages[1].tool_calls"},
        {R"([{"role": "assistant", "tool_calls": [{}]}])", "messages[0].tool_calls[0].function"},
        {R"([{"role": "assistant", "tool_calls": [{"function": {}}]}])",
         "messages[0].tool_calls[0].function.name"},
        {R"([{"role": "tool", "content": "a", "tool_call_id": 1}])", "messages[0].tool_call_id"},
        {R"([{"role": "assistant", "content": "a", "reasoning_content": []}])",
         "messages[0].reasoning_content"},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.messages);
        const Refusal refusal = refusal_of([&] { read_all("{\"messages\": " + c.messages + "}"); });
        EXPECT_EQ(refusal.param, c.param);
        EXPECT_EQ(refusal.status, 400);
    }
}

TEST(ChatFields, NameWhatIsWrong) {
    struct Case {
        std::string fields;
        std::string param;
    };
    const std::vector<Case> cases{
        {R"("tools": {})", "tools"},
        {R"("tools": [1])", "tools[0]"},
        {R"("tools": [{"type": "web_search"}])", "tools[0].type"},
        {R"("tools": [{"type": "function"}])", "tools[0].function"},
        {R"("tools": [{"function": {}}])", "tools[0].function.name"},
        {R"("tools": [{"function": {"name": "f", "parameters": []}}])",
         "tools[0].function.parameters"},
        {R"("tool_choice": "maybe")", "tool_choice"},
        {R"("tool_choice": 1)", "tool_choice"},
        {R"("tool_choice": "required")", "tool_choice"},
        {R"("tool_choice": {"type": "allowed_tools"})", "tool_choice"},
        {tool + R"(, "tool_choice": {"function": {"name": "g"}})", "tool_choice.function.name"},
        {R"("parallel_tool_calls": 1)", "parallel_tool_calls"},
        {R"("chat_template_kwargs": [])", "chat_template_kwargs"},
        {R"("add_generation_prompt": "no")", "add_generation_prompt"},
        {R"("reasoning_format": "deepseek-legacy")", "reasoning_format"},
        {R"("reasoning_effort": 1)", "reasoning_effort"},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.fields);
        EXPECT_EQ(refusal_of([&] { read(c.fields); }).param, c.param);
    }
}

TEST(ChatPrompt, NamesTheFieldAtFault) {
    const ChatFormat format(test::demo_tokenizer());
    const auto refusal = [&](const std::string& fields) {
        return refusal_of([&] { chat_prompt(format, read(fields)); });
    };
    const auto function = [](const std::string& members) {
        return R"({"type": "function", "function": {"name": )" + members + "}}";
    };
    const struct Case {
        std::string tools;
        std::string message;
    } cases[] = {
        {function(R"("f")") + ", " + function(R"("f")"),
         "tools[1].function.name: \"f\" comes twice"},
        {function(R"("a b")"), "tools[0].function.name: must be"},
        {function(R"("f", "parameters": {"type": "array"})"),
         "tools[0].function.parameters: must be of type object"},
        {function(R"("f", "parameters": {"properties": {"a": {"not": {}}}})"),
         "tools: parameters of f: "},
    };
    for (const Case& c : cases) {
        const Refusal told = refusal("\"tools\": [" + c.tools + "]");
        EXPECT_EQ(told.param, "tools") << c.tools;
        EXPECT_THAT(told.message, testing::StartsWith(c.message)) << c.tools;
    }
    const Refusal twice = refusal_of([&] {
        chat_prompt(format, read_all(R"({"messages": [{"role": "assistant", "content": "a"},
                                                      {"role": "assistant", "content": "b"}]})"));
    });
    EXPECT_EQ(twice.param, "messages");
    EXPECT_THAT(twice.message, testing::StartsWith("messages[1]: two assistant messages"));
}

TEST(ChatLogprobs, AreABooleanAndANumber) {
    const auto wanted = [](const std::string& text) {
        const ordered_json object = json(text);
        return chat_logprobs_fields(Fields(object), {});
    };
    EXPECT_EQ(wanted("{}"), -1);
    EXPECT_EQ(wanted(R"({"logprobs": false})"), -1);
    EXPECT_EQ(wanted(R"({"logprobs": true})"), 0);
    EXPECT_EQ(wanted(R"({"logprobs": true, "top_logprobs": 20})"), 20);
    EXPECT_EQ(refusal_of([&] { wanted(R"({"logprobs": true, "top_logprobs": 21})"); }).param,
              "top_logprobs");
    EXPECT_EQ(refusal_of([&] { wanted(R"({"top_logprobs": 2})"); }).param, "top_logprobs");
    EXPECT_EQ(refusal_of([&] { wanted(R"({"logprobs": 5})"); }).param, "logprobs");
}

}  // namespace
}  // namespace pleat
