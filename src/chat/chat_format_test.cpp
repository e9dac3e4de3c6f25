#include "chat/chat_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <iterator>

#include "text/demo_model_for_test.h"
#include "text/sampler.h"

namespace pleat {
namespace {

using test::demo_tokenizer;
using test::message_of;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Json = nlohmann::ordered_json;

ChatRequest request_of(std::string_view messages) { return {.messages = Json::parse(messages)}; }

const ChatRequest hello = request_of(R"([{"role": "user", "content": "Hi"}])");

const Json weather = Json::parse(R"([{"type": "function", "function": {
    "name": "get_weather", "description": "Weather now.", "parameters": {"type": "object",
    "properties": {"city": {"type": "string"}}, "required": ["city"]}}}])");

ChatRequest with_tools(ChatRequest request, ToolChoice choice = ToolChoice::automatic) {
    request.tools = weather;
    request.tool_choice = choice;
    return request;
}

ChatFormat format_of(const std::string& text) { return ChatFormat(demo_tokenizer(), text); }

// Templates of our own in the manner of the families.
const std::string hermes_template = R"({%- if tools %}<|im_start|>system
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}<|im_end|>
{% endif %}
{%- for m in messages %}<|im_start|>{{ m.role }}
{{ m.content if m.content is string else '' }}
{%- for call in m.tool_calls or [] %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% if enable_thinking is defined and enable_thinking %}<think>
{% elif enable_thinking is defined %}<think>

</think>

{% endif %}{% endif %})";

const std::string text_arguments_template =
    R"({% for m in messages %}[{{ m.role }}]{{ m.content or '' }}
{%- for call in m.tool_calls or [] %}{{ '<tool_call>{"name": "' + call.function.name + '", "arguments": ' + call.function.arguments + '}</tool_call>' }}{% endfor %}
{% endfor %})";

const std::string qwen35_template = R"({% for m in messages %}[{{ m.role }}]{{ m.content or '' }}
{%- for call in m.tool_calls or [] %}
<tool_call>
<function={{ call.function.name }}>
{% for k, v in call.function.arguments | items %}<parameter={{ k }}>
{{ v }}
</parameter>
{% endfor %}</function>
</tool_call>
{%- endfor %}
{% endfor %})";

const std::string llama3_template = R"({% for m in messages %}[{{ m.role }}]
{%- if m.tool_calls %}{"name": "{{ m.tool_calls[0].function.name }}", "parameters": {{ m.tool_calls[0].function.arguments | tojson }}}
{%- else %}{{ m.content }}{% endif %}
{% endfor %})";

const std::string gemma4_template = R"({% for m in messages %}<|turn>{{ m.role }}
{{ m.content or '' }}{% for call in m.tool_calls or [] %}<|tool_call>call:{{ call.function.name }}{
{%- for k, v in call.function.arguments | dictsort %}{{ k }}:<|"|>{{ v }}<|"|>{% endfor %}}<tool_call|>{% endfor %}
{% endfor %})";

TEST(ChatFormat, IsTheFilesOwn) {
    const ChatFormat format(demo_tokenizer());
    EXPECT_THAT(format.warnings(), ElementsAre(HasSubstr("knows no tool calls")));
    EXPECT_EQ(format.template_text(), demo_tokenizer().chat_template());
    const ChatPrompt prompt = format.prepare(hello);
    EXPECT_EQ(prompt.text, "<|user|>\nHi<|end|>\n<|assistant|>\n");
    EXPECT_FALSE(prompt.special);
    EXPECT_THAT(prompt.stops, IsEmpty());
}

TEST(ChatFormat, KnowsThatThePromptOpensTheReasoning) {
    const ChatFormat format = format_of(
        "{{ messages[0].content.split('</think>')[-1] }}{% if enable_thinking is not defined or "
        "enable_thinking %}<think>\n{% else %}<think>\n\n</think>\n\n{% endif %}");
    EXPECT_TRUE(format.prepare(hello).syntax.reasoning_open);
    EXPECT_EQ(format.prepare(hello).syntax.reasoning.close, "</think>");
    ChatRequest quick = hello;
    quick.template_arguments["enable_thinking"] = false;
    EXPECT_FALSE(format.prepare(quick).syntax.reasoning_open);
    ChatRequest raw = hello;
    raw.reasoning = ReasoningFormat::none;
    EXPECT_EQ(format.prepare(raw).syntax.reasoning.close, "");
    EXPECT_FALSE(format.prepare(raw).syntax.reasoning_open);
}

TEST(ChatFormat, RefusesATemplateThatShowsNothingOfTheConversation) {
    EXPECT_THAT(message_of([] { format_of("chatml"); }), HasSubstr("not the name of a template"));
}

/// The demo model with other bytes in its file, as many as before.
Tokenizer patched_tokenizer(const std::string& from, const std::string& to) {
    std::ifstream in(demo_tokenizer().path(), std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(in)), {});
    bytes.replace(bytes.find(from), from.size(), to);
    const std::string path = testing::TempDir() + "pleat-chat-format-test.gguf";
    std::ofstream(path, std::ios::binary) << bytes;
    Tokenizer tokenizer = Tokenizer::open(path);
    std::remove(path.c_str());
    return tokenizer;
}

TEST(ChatFormat, FallsBackToChatMlAndSaysSo) {
    const ChatFormat none(patched_tokenizer("tokenizer.chat_template", "tokenizer.chat_templatX"));
    EXPECT_EQ(none.prepare(hello).text, "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
    EXPECT_THAT(none.prepare(hello).stops, ElementsAre("<|im_end|>"));
    EXPECT_THAT(none.warnings(), Contains("the file has no chat template; ChatML is used"));

    const std::string own = demo_tokenizer().chat_template().substr(0, 12);
    const ChatFormat broken(patched_tokenizer(own, "{% frobnic  "));
    EXPECT_THAT(broken.prepare(hello).text, HasSubstr("<|im_start|>user\nHi"));
    EXPECT_THAT(broken.warnings(), Contains(testing::AllOf(
                                       HasSubstr("the file's chat template: line 1, character 1: "),
                                       HasSubstr("; ChatML is used in its place"))));
}

TEST(ChatFormat, RefusesAGivenTemplateThatCannotRun) {
    EXPECT_THAT(message_of([] { format_of("{% frobnicate %}"); }),
                HasSubstr("chat template: line 1, character 1: statement frobnicate"));
    EXPECT_THAT(message_of([] { format_of("{{ messages[0].content | frobnicate }}"); }),
                HasSubstr("there is no filter frobnicate"));
}

TEST(ChatFormat, NamesWhatATemplateLacks) {
    const ChatFormat format =
        format_of("{{ messages[0].content }}{% if documents %}{{ 1 | frobnicate }}{% endif %}");
    EXPECT_THAT(format.warnings(), Contains("chat template, line 1: there is no filter frobnicate: "
                                            "conversations that need it are refused"));
}

TEST(ChatFormat, KnowsTheFormsOfToolCalls) {
    EXPECT_EQ(format_of(hermes_template).tool_form(), "hermes");
    EXPECT_EQ(format_of(text_arguments_template).tool_form(), "hermes");
    EXPECT_EQ(format_of(qwen35_template).tool_form(), "qwen3.5");
    EXPECT_EQ(format_of(llama3_template).tool_form(), "llama3");
    EXPECT_EQ(format_of(gemma4_template).tool_form(), "gemma4");
    EXPECT_EQ(format_of("{{ messages[0].content }}<tool_call>").tool_form(), "generic");
    EXPECT_THAT(format_of(hermes_template).warnings(), IsEmpty());
}

const ChatRequest called = request_of(R"([
    {"role": "user", "content": [{"type": "text", "text": "We"}, {"type": "text", "text": "ather?"}]},
    {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function",
        "function": {"name": "get_weather", "arguments": "{\"city\":\"Ulm\"}"}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "rain"}])");

TEST(ChatFormat, GivesTemplatesArgumentsAsTheyWantThem) {
    EXPECT_THAT(
        format_of(hermes_template).prepare(called).text,
        testing::AllOf(HasSubstr("user\nWeather?<|im_end|>"),
                       HasSubstr(R"({"name": "get_weather", "arguments": {"city": "Ulm"}})")));
    EXPECT_THAT(format_of(text_arguments_template).prepare(called).text,
                HasSubstr(R"("arguments": {"city":"Ulm"}})"));
    EXPECT_THAT(format_of(qwen35_template).prepare(called).text,
                HasSubstr("<parameter=city>\nUlm\n</parameter>"));
    ChatRequest broken = called;
    broken.messages[1]["tool_calls"][0]["function"]["arguments"] = "{no";
    EXPECT_THAT(format_of(hermes_template).prepare(broken).text, HasSubstr("\"{no\""));
}

TEST(ChatFormat, ConstrainsCallsAsAsked) {
    const ChatFormat format = format_of(hermes_template);
    const ChatPrompt automatic = format.prepare(with_tools(hello));
    EXPECT_THAT(automatic.constraint.triggers, IsEmpty());  // reasoning may come first
    EXPECT_THAT(automatic.text, HasSubstr("get_weather"));
    EXPECT_EQ(automatic.syntax.tools, ToolForm::hermes);
    EXPECT_THAT(automatic.syntax.tool_names, ElementsAre("get_weather"));
    ChatRequest raw = with_tools(hello);
    raw.reasoning = ReasoningFormat::none;
    EXPECT_THAT(format.prepare(raw).constraint.triggers, ElementsAre("<tool_call>"));

    const ChatPrompt none = format.prepare(with_tools(hello, ToolChoice::none));
    EXPECT_THAT(none.text, Not(HasSubstr("get_weather")));
    EXPECT_EQ(none.syntax.tools, ToolForm::none);
    EXPECT_EQ(none.constraint.text, "");

    ChatRequest named = with_tools(hello, ToolChoice::named);
    named.tool_name = "nobody";
    EXPECT_EQ(message_of([&] { format.prepare(named); }),
              "tool_choice: there is no tool named nobody");
    ChatRequest both = with_tools(hello);
    both.grammar = "root ::= [0-9]+";
    EXPECT_THAT(message_of([&] { format.prepare(both); }),
                HasSubstr("cannot be combined with tools"));
}

/// Whether a prompt's constraint takes a text and lets it end there.
bool takes(const ChatPrompt& prompt, const std::string& text) {
    Sampler sampler({.constraint = prompt.constraint}, demo_tokenizer());
    for (const int32_t token : demo_tokenizer().tokenize(text, false, true)) {
        if (!sampler.fits_grammar(token)) return false;
        sampler.accept(token);
    }
    return sampler.fits_grammar(demo_tokenizer().eos());
}

TEST(ChatFormat, LetsReasoningComeBeforeAConstrainedAnswer) {
    const ChatFormat format = format_of(hermes_template);
    ChatRequest digits = hello;
    digits.grammar = "root ::= [0-9]+";
    EXPECT_TRUE(takes(format.prepare(digits), "12"));
    EXPECT_TRUE(takes(format.prepare(digits), "<think>hm</think>\n\n12"));
    EXPECT_FALSE(takes(format.prepare(digits), "<think>hm</think>\n\nno"));
    EXPECT_FALSE(takes(format.prepare(digits), "<think>hm"));
    digits.template_arguments["enable_thinking"] = true;  // the prompt opens it
    EXPECT_TRUE(takes(format.prepare(digits), "hm</think>12"));
    EXPECT_FALSE(takes(format.prepare(digits), "12"));
    digits.template_arguments["enable_thinking"] = false;
    EXPECT_TRUE(takes(format.prepare(digits), "12"));
    EXPECT_FALSE(takes(format.prepare(digits), "<think>hm</think>12"));
    digits.template_arguments.clear();
    digits.reasoning = ReasoningFormat::none;
    EXPECT_FALSE(takes(format.prepare(digits), "<think>hm</think>12"));

    const std::string call =
        R"(<tool_call>{"name": "get_weather", "arguments": {"city": "Ulm"}}</tool_call>)";
    const ChatPrompt must = format.prepare(with_tools(hello, ToolChoice::required));
    EXPECT_TRUE(takes(must, call));
    EXPECT_TRUE(takes(must, "<think>a <tool_call> b</think>" + call));
    EXPECT_FALSE(takes(must, "Hi"));
    const ChatPrompt may = format.prepare(with_tools(hello));
    EXPECT_TRUE(takes(may, "<think>a <tool_call> b</think>Hi"));
    EXPECT_TRUE(takes(may, "<think>a</think>Hi " + call));
    EXPECT_FALSE(takes(may, "<think>a</think>Hi <tool_call>b"));
}

std::string begun(const ChatFormat& format, std::string_view answer, Json arguments = {}) {
    ChatRequest request = hello;
    request.messages.push_back(Json::parse(answer));
    if (!arguments.is_null()) request.template_arguments = std::move(arguments);
    return format.prepare(request).text;
}

TEST(ChatFormat, GoesOnWithALastMessageOfTheAssistant) {
    const ChatFormat plain(demo_tokenizer());
    const std::string prompt = "<|user|>\nHi<|end|>\n<|assistant|>\n";
    EXPECT_EQ(begun(plain, R"({"role": "assistant", "content": "The code "})"),
              prompt + "The code ");
    EXPECT_EQ(begun(plain, R"({"role": "assistant", "content": [{"type": "text", "text": "The"},
                               {"type": "text", "text": " code"}], "tool_calls": []})"),
              prompt + "The code");
    // No such model thinks: there is no place for it.
    EXPECT_EQ(begun(plain, R"({"role": "assistant", "content": "a", "reasoning_content": "b"})"),
              prompt + "a");
    EXPECT_EQ(begun(plain, R"({"role": "assistant", "content": null})"), prompt);
    EXPECT_EQ(plain.prepare(request_of(R"([{"role": "assistant", "content": "a"}])")).text,
              "<|assistant|>\na");

    ChatRequest request = request_of(R"([{"role": "user", "content": "Hi"},
                                         {"role": "assistant", "content": "a"}])");
    request.add_generation_prompt = false;
    EXPECT_EQ(plain.prepare(request).text, prompt + "a");
    request.continue_answer = false;
    EXPECT_EQ(plain.prepare(request).text, "<|user|>\nHi<|end|>\n<|assistant|>\na<|end|>\n");
}

TEST(ChatFormat, WritesReasoningBeforeAnAnswerThatGoesOn) {
    const ChatFormat format = format_of(hermes_template);
    const std::string plain = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n";
    const std::string answer = R"({"role": "assistant", "content": "a"})";
    const std::string both = R"({"role": "assistant", "content": "a", "reasoning_content": "b"})";
    const std::string thought = R"({"role": "assistant", "content": "", "reasoning_content": "b"})";
    const Json on{{"enable_thinking", true}};
    const Json off{{"enable_thinking", false}};
    EXPECT_EQ(begun(format, answer), plain + "a");
    EXPECT_EQ(begun(format, both), plain + "<think>\nb\n</think>\n\na");
    EXPECT_EQ(begun(format, thought), plain + "<think>\nb");
    EXPECT_EQ(begun(format, answer, on), plain + "<think>\n\n</think>\n\na");
    EXPECT_EQ(begun(format, both, on), plain + "<think>\nb\n</think>\n\na");
    EXPECT_EQ(begun(format, thought, on), plain + "<think>\nb");
    EXPECT_EQ(begun(format, R"({"role": "assistant", "content": "b</think>a"})", on),
              plain + "<think>\nb</think>a");
    EXPECT_EQ(begun(format, both, off), plain + "<think>\n\n</think>\n\na");

    ChatRequest digits = hello;
    digits.grammar = "root ::= [0-9]+";
    digits.messages.push_back(Json::parse(answer));
    digits.template_arguments = on;
    EXPECT_TRUE(takes(format.prepare(digits), "12"));
    EXPECT_FALSE(takes(format.prepare(digits), "<think>b</think>12"));
    EXPECT_FALSE(format.prepare(digits).syntax.reasoning_open);
    digits.messages.back() = Json::parse(thought);
    EXPECT_TRUE(takes(format.prepare(digits), "c</think>12"));
    EXPECT_TRUE(format.prepare(digits).syntax.reasoning_open);
    const ChatAnswer rest = parse_answer(format.prepare(digits).syntax, 1, " c</think>\n\n12");
    EXPECT_EQ(rest.reasoning + "|" + rest.content, "c|12");
}

TEST(ChatFormat, RefusesAnswersThatCannotGoOn) {
    const ChatFormat format(demo_tokenizer());
    EXPECT_EQ(message_of([&] {
                  format.prepare(request_of(R"([{"role": "assistant", "content": "a"},
                                                {"role": "assistant", "content": "b"}])"));
              }),
              "messages[1]: two assistant messages at the end cannot be continued");
    EXPECT_EQ(message_of([&] {
                  begun(format, R"({"role": "assistant", "content": "a", "tool_calls": [{}]})");
              }),
              "messages[1]: an assistant message with tool calls cannot be continued");
}

TEST(ChatFormat, GivesTheTemplateParametersOfEachTool) {
    const ChatFormat format = format_of(
        "{% if tools %}{% for t in tools %}{{ t.function.parameters.properties.items() | length }}"
        "{{ t.function.parameters | tojson }}{% endfor %}{% endif %}" +
        hermes_template);
    const std::string empty = R"(0{"type": "object", "properties": {}})";
    for (const std::string_view function :
         {R"({"name": "f"})", R"({"name": "f", "parameters": null})",
          R"({"name": "f", "parameters": {}})",
          R"({"name": "f", "parameters": {"type": "object"}})"}) {
        ChatRequest request = hello;
        request.tools = Json::array({{{"type", "function"}, {"function", Json::parse(function)}}});
        EXPECT_THAT(format.prepare(request).text, testing::StartsWith(empty + "<|im_start|>"))
            << function;
    }
}

TEST(ChatFormat, DescribesToolsToATemplateThatKnowsNone) {
    const ChatFormat format =
        format_of("{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}{{ tools }}");
    const ChatPrompt prompt = format.prepare(with_tools(called));
    EXPECT_THAT(prompt.text,
                testing::AllOf(HasSubstr("[system]You can call functions."),
                               HasSubstr(R"({"name":"get_weather","description":"Weather now.",)"),
                               HasSubstr("[user]Weather?[assistant]<tool_call>\n"
                                         R"({"name": "get_weather", "arguments": {"city":"Ulm"}})"
                                         "\n</tool_call>[user]<tool_response>\nrain\n"
                                         "</tool_response>None")));
    EXPECT_EQ(prompt.syntax.tools, ToolForm::hermes);
    EXPECT_THAT(prompt.constraint.triggers, ElementsAre("<tool_call>"));
}

TEST(ChatMessages, TakeTheRolesThatTheTemplateHas) {
    const ChatRequest request = request_of(R"([{"role": "developer", "content": "Be brief."},
        {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo"},
        {"role": "user", "content": "?"}])");
    EXPECT_EQ(format_of("{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}")
                  .prepare(request)
                  .text,
              "[system]Be brief.[user]Hi[assistant]Yo[user]?");
    EXPECT_EQ(
        format_of("{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no') "
                  "}}{% endif %}[{{ m.role }}]{{ m.content }}{% endfor %}")
            .prepare(request)
            .text,
        "[user]Be brief.\n\nHi[assistant]Yo[user]?");
    EXPECT_EQ(format_of("{% for m in messages %}[{{ 'dev' if m.role == 'developer' else m.role }}]"
                        "{{ m.content }}{% endfor %}")
                  .prepare(request)
                  .text,
              "[dev]Be brief.[user]Hi[assistant]Yo[user]?");
}

TEST(ChatMessages, ArePartsWhereTheTemplateWantsParts) {
    EXPECT_EQ(format_of("{% for m in messages %}{% for p in m.content %}{{ '(' + p.text + ')' }}"
                        "{% endfor %}{% endfor %}")
                  .prepare(hello)
                  .text,
              "(Hi)");
}

TEST(ChatMessages, HandReasoningToTheTemplate) {
    EXPECT_EQ(
        format_of("{% for m in messages %}{{ m.content }}{{ m.reasoning_content }}{% endfor %}")
            .prepare(request_of(R"([{"role": "user", "content": "Hi"},
                      {"role": "assistant", "content": "a", "reasoning_content": "b"},
                      {"role": "user", "content": "?"}])"))
            .text,
        "Hiab?");
}

TEST(ChatMessages, GiveAnswersOfToolsTheirName) {
    EXPECT_THAT(format_of("{% for m in messages %}[{{ m.role }} {{ m.name }}]{{ m.content }}"
                          "{% endfor %}")
                    .prepare(with_tools(request_of(R"([{"role": "user", "content": "Hi"}])")))
                    .text,
                HasSubstr("Hi"));
    EXPECT_THAT(format_of(hermes_template + "{{ messages[-1].name }}").prepare(called).text,
                testing::EndsWith("get_weather"));
}

TEST(ChatMessages, ThatAreMalformedAreRefusedByPlace) {
    const ChatFormat format(demo_tokenizer());
    const auto refusal = [&](std::string_view messages) {
        return message_of([&] { format.prepare(request_of(messages)); });
    };
    EXPECT_EQ(refusal("[]"), "messages: must be a list of at least one");
    EXPECT_EQ(refusal("[1]"), "messages[0]: must be an object");
    EXPECT_EQ(refusal(R"([{"content": "a"}])"), "messages[0]: has no role");
    EXPECT_EQ(refusal(R"([{"role": "user"}])"), "messages[0]: has no content");
    EXPECT_EQ(refusal(R"([{"role": "user", "content": 3}])"),
              "messages[0].content: must be a text, null or a list of parts");
    EXPECT_EQ(refusal(R"([{"role": "user", "content": [{"type": "image_url"}]}])"),
              "messages[0].content[0]: only parts of type text are supported, not \"image_url\"");
    EXPECT_EQ(refusal(R"([{"role": "user", "content": "a"},
                          {"role": "assistant", "tool_calls": [{}]}, {"role": "tool"}])"),
              "messages[1].tool_calls[0]: has no function");
    EXPECT_EQ(refusal(R"([{"role": "assistant", "content": "a", "reasoning_content": 1}])"),
              "messages[0].reasoning_content: must be a text");
}

}  // namespace
}  // namespace pleat
