#include "text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/demo_model_for_test.h"

namespace pleat {
namespace {

using test::demo_tokenizer;
using test::message_of;
using testing::HasSubstr;

const std::vector<ChatMessage> talk{
    {"system", "Be brief."}, {"user", "Hi"}, {"assistant", "Hello."}, {"user", "Bye"}};

std::string render(const std::string& text, const std::vector<ChatMessage>& messages = talk) {
    return ChatTemplate(text, "<s>", "</s>").render(messages, true);
}

std::string refusal(const std::string& text) {
    return message_of([&] { render(text); });
}

TEST(ChatTemplate, OfTheDemoModelGivesItsFormat) {
    const ChatTemplate chat = ChatTemplate::of(demo_tokenizer());
    EXPECT_EQ(chat.render({{"user", "Hi"}}, true), "<|user|>\nHi<|end|>\n<|assistant|>\n");
    EXPECT_EQ(chat.render({{"user", "Hi"}}, false), "<|user|>\nHi<|end|>\n");
    EXPECT_EQ(chat.bos(), "<|endoftext|>");
}

TEST(ChatTemplate, CanBeRenderedAgain) {
    const ChatTemplate chat = ChatTemplate::of(demo_tokenizer());
    EXPECT_EQ(chat.render(talk, true), chat.render(talk, true));
}

TEST(ChatTemplate, TakesThinkingOutOfEarlierTurns) {  // as the templates of reasoning models do
    const std::string text = R"({{ bos_token }}{% for m in messages %}
{%- set content = m.content %}
{%- if m.role == 'assistant' and '</think>' in content %}
{%- set content = content.split('</think>')[-1].lstrip('\n') %}
{%- endif -%}
[{{ m.role }}]{{ content }}{% if not loop.last %}|{% endif %}
{%- endfor %}{% if add_generation_prompt %}[assistant]<think>
{% endif %})";
    EXPECT_EQ(render(text, {{"user", "2+2?"}, {"assistant", "<think>\nhm\n</think>\n\n4"}}),
              "<s>[user]2+2?|[assistant]4[assistant]<think>\n");
}

TEST(ChatTemplate, KeepsBracesInMessagesAsText) {
    EXPECT_EQ(render("{{ messages[0].content }}", {{"user", "{{ 1 }} {% x %}"}}),
              "{{ 1 }} {% x %}");
}

TEST(ChatTemplate, StripsLinesAsHuggingFaceDoes) {
    EXPECT_EQ(render("a\n  {% if true %}\nb\n  {% endif %}\nc\n"), "a\nb\nc");
}

TEST(ChatTemplate, HasTheFunctionsThatTemplatesCall) {
    EXPECT_EQ(render("{{ messages | first | tojson }}"),
              R"({"role": "system", "content": "Be brief."})");
    EXPECT_EQ(render("{{ messages | reverse | map(attribute='content') | join(',') }}"),
              "Bye,Hello.,Hi,Be brief.");
    EXPECT_EQ(render("{{ 'a-b-c' | replace('-', '+') }}"), "a+b+c");
    EXPECT_EQ(render("{% for i in range(6, 0, -2) %}{{ i }}{% endfor %}"), "642");
    EXPECT_EQ(render("{{ strftime_now('%Y') | length }}"), "4");
    EXPECT_EQ(render("{{ messages[::-1][0].content }}{{ 7 % 4 }}{{ 9 // 2 }}"), "Bye34");
}

TEST(ChatTemplate, SaysWhatTheTemplateRaises) {
    EXPECT_EQ(refusal("{{ raise_exception('roles must\nalternate') }}"),
              "chat template: roles must");
}

TEST(ChatTemplate, SaysThatAFileHasNone) {
    EXPECT_THAT(refusal(""), HasSubstr("the file has no chat template"));
}

TEST(ChatTemplate, SaysWhereItsSyntaxIsWrong) {
    EXPECT_EQ(refusal("a\n{% if x %}b"),
              "chat template: line 2, character 1: if without its endif");
    EXPECT_THAT(refusal("{{ a b }}"),
                HasSubstr("line 1, character 6: expected the end of the tag"));
    EXPECT_THAT(refusal("{% endif %}"), HasSubstr("unexpected endif"));
    EXPECT_THAT(refusal("{% frobnicate %}"), HasSubstr("statement frobnicate is not supported"));
    EXPECT_THAT(refusal("ab {{ 'x"), HasSubstr("line 1, character 7: string without its end"));
    EXPECT_THAT(refusal("{# x"), HasSubstr("comment without its #}"));
}

TEST(ChatTemplate, SaysWhichValueIsMissing) {
    EXPECT_EQ(refusal("a\n{{ nothing.name }}"),
              "chat template: line 2: name of an undefined value");
}

TEST(ChatTemplate, SaysWhatItDoesNotKnowAndRunsTheRest) {
    const ChatTemplate chat("a\n{% if tools %}{{ 1 | frobnicate(2) }}{% endif %}b", "", "");
    EXPECT_THAT(chat.missing(), testing::ElementsAre("line 2: there is no filter frobnicate"));
    EXPECT_EQ(chat.render(talk, true), "a\nb");
    EXPECT_EQ(refusal("{{ 1 is frobnicated }}"),
              "chat template: line 1: there is no test frobnicated");
}

TEST(ChatTemplate, TakesToolsAndFurtherVariables) {
    const ChatTemplate chat(
        "{{ tools is none }}{{ tools }}{{ enable_thinking is defined and enable_thinking }}", "",
        "");
    EXPECT_EQ(chat.render(TemplateInputs{}), "TrueNoneFalse");
    EXPECT_EQ(chat.render(
                  TemplateInputs{.tools = {1, nullptr}, .arguments = {{"enable_thinking", true}}}),
              "False[1, None]True");
}

TEST(ChatTemplateMacros, MayCallThemselvesAsDeepAsSchemasGo) {
    EXPECT_EQ(render("{% macro f(n) %}{% if n > 0 %}x{{ f(n - 1) }}{% endif %}{% endmacro %}"
                     "{{ f(50) }}"),
              std::string(50, 'x'));
}

TEST(ChatTemplateMacros, MayCallThemselvesInALoop) {  // calls that have returned do not count
    EXPECT_EQ(render("{% macro f(n) %}x{% endmacro %}{% for i in range(500) %}{{ f(i) }}"
                     "{% endfor %}"),
              std::string(500, 'x'));
}

TEST(ChatTemplateAbuse, EndsMacrosThatCallThemselvesForEver) {
    for (const std::string text :
         {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
          "{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}{{ f() }}{% endmacro %}{{ f() }}",
          "{% macro f(g) %}{{ g(g) }}{% endmacro %}{{ f(f) }}",
          "{% macro f(g) %}{{ g(g) }}{% endmacro %}{% call f(f) %}x{% endcall %}"}) {
        EXPECT_THAT(refusal(text), HasSubstr("macros call each other more than 100 deep")) << text;
    }
}

TEST(ChatTemplateAbuse, EndsOtherRecursionToo) {
    EXPECT_THAT(refusal("{% for i in [1] %}{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"
                        "{% endfor %}"),
                HasSubstr("more than 100 deep"));
    EXPECT_THAT(refusal("{% macro f() %}{% call f() %}{% endcall %}{% endmacro %}{{ f() }}"),
                HasSubstr("more than 100 deep"));
    EXPECT_THAT(refusal("{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}"),
                HasSubstr("recursive loops"));
}

TEST(ChatTemplateAbuse, RefusesDeepNesting) {
    std::string blocks;
    for (int i = 0; i < 50'000 / 13; ++i) blocks += "{% if true %}";
    EXPECT_THAT(refusal(blocks), HasSubstr("more than 100 blocks open"));
    EXPECT_THAT(refusal("{{ " + std::string(50'000, '(')), HasSubstr("more than 100 brackets"));
    std::string sum = "{{ 1";
    for (int i = 0; i < 20'000; ++i) sum += "+1";
    EXPECT_THAT(refusal(sum + " }}"), HasSubstr("tag of more than 4000 words"));
    std::string nots = "{{ ";
    for (int i = 0; i < 3'900; ++i) nots += "not ";
    EXPECT_EQ(render(nots + "true }}"), "True");
    EXPECT_THAT(refusal(std::string(200'000, 'x')), HasSubstr("200000 bytes, at most 131072"));
}

TEST(ChatTemplateAbuse, StandsLongCommentsAndNames) {
    EXPECT_EQ(render("a{# " + std::string(100'000, 'x') + " #}b"), "ab");
    EXPECT_EQ(render("a{{ " + std::string(100'000, 'x') + " }}b"), "ab");
    EXPECT_EQ(render("a{{ 1" + std::string(20'000, ' ') + " }}b"), "a1b");
}

TEST(ChatTemplateAbuse, AnswersForWhatHasNoResult) {
    for (const std::string text : {"{{ 1 % 0 }}", "{{ 1 // 0 }}", "{{ 1 / 0 }}", "{{ 1 % 0.0 }}",
                                   "{% set z = 0 %}{{ 1 % z }}", "{{ 5 is divisibleby 0 }}"}) {
        EXPECT_THAT(refusal(text), HasSubstr("division by zero")) << text;
    }
    EXPECT_THAT(refusal("{{ 9223372036854775807 + 1 }}"), HasSubstr("beyond 64 bits"));
    EXPECT_THAT(refusal("{{ 'abc'[::0] }}"), HasSubstr("slice step cannot be zero"));
    EXPECT_THAT(refusal("{{ 'abc'.split('') }}"), HasSubstr("empty separator"));
    EXPECT_THAT(refusal("{{ range(0, 1000000000000) }}"), HasSubstr("more than 100000 numbers"));
    EXPECT_THAT(refusal("{{ range(5, 0, 0) }}"), HasSubstr("range step"));
}

TEST(ChatTemplateAbuse, EndsWhatGrowsWithoutBound) {
    EXPECT_THAT(refusal("{% set n = namespace(a='x') %}{% for i in range(60) %}{% set n.a = n.a + "
                        "n.a %}{% endfor %}"),
                HasSubstr("MiB of text"));
    EXPECT_THAT(refusal("{% set n = namespace(a=[1]) %}{% for i in range(60) %}{% set n.a = [n.a, "
                        "n.a] %}{% endfor %}{{ n.a | tojson }}"),
                HasSubstr("MiB"));
    EXPECT_THAT(refusal("{% set n = namespace(a=[1], b=[1]) %}{% for i in range(60) %}{% set n.a = "
                        "[n.a, n.a] %}{% set n.b = [n.b, n.b] %}{% endfor %}{{ n.a == n.b }}"),
                HasSubstr("compares too much"));
    EXPECT_THAT(refusal("{{ 'x' * 99999999999 }}"), HasSubstr("repeats too much"));
    EXPECT_THAT(refusal("{{ ('x' * 9999999) | replace('', 'y' * 999) }}"), HasSubstr("MiB"));
    EXPECT_THAT(refusal("{{ (['x' * 9999] * 999) * 99 }}"), HasSubstr("MiB"));
}

TEST(ChatTemplateAbuse, StandsDeeplyNestedValues) {
    EXPECT_THAT(
        refusal("{% set n = namespace(a=[]) %}{% for i in range(99999) %}{% for k in [1, 2] "
                "%}{% set n.a = [n.a] %}{% endfor %}{% endfor %}{{ n.a | length }}"),
        HasSubstr("lists and mappings"));
    EXPECT_EQ(render("{% set n = namespace(a=[]) %}{% for i in range(40000) %}{% set n.a = [n.a] %}"
                     "{% endfor %}{{ (n.a | tojson) | length }}"),
              "80002");
}

TEST(ChatTemplateAbuse, EndsLoopsThatDoNotEnd) {
    EXPECT_THAT(refusal("{% for a in range(99999) %}{% for b in range(99999) %}{% set c = "
                        "add_generation_prompt %}{% endfor %}{% endfor %}"),
                HasSubstr("does not end within"));
}

TEST(ChatTemplateAbuse, AnswersForBytesThatAreNoUtf8) {
    EXPECT_EQ(render("{{ messages[0].content }}", {{"user", "\xFF"}}), "\xFF");
    EXPECT_THAT(message_of([] {
                    render("{{ messages | tojson }}", {{"user", "\xFF"}});
                }),
                HasSubstr("chat template: "));
}

}  // namespace
}  // namespace pleat
