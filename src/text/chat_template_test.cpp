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
    EXPECT_THAT(refusal("a\n{% if x %}b"), HasSubstr("Unterminated if at row 2"));
    EXPECT_THAT(refusal("{{ a b }}"), HasSubstr("row 1"));
    EXPECT_THAT(refusal("{% endif %}"), HasSubstr("Unexpected endif"));
    EXPECT_THAT(refusal("{% frobnicate %}"), HasSubstr("Expected block keyword"));
    EXPECT_THAT(refusal("ab {{ 'x"), HasSubstr("line 1, character 7: string without its end"));
    EXPECT_THAT(refusal("{# x"), HasSubstr("comment without its #}"));
}

TEST(ChatTemplate, SaysWhichValueIsMissing) {
    EXPECT_THAT(refusal("{{ tools[0].name }}"), HasSubstr("'tools' is not defined"));
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

TEST(ChatTemplateAbuse, RefusesRecursionThatItCouldNotCount) {
    EXPECT_THAT(refusal("{% for i in [1] %}{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"
                        "{% endfor %}"),
                HasSubstr("a macro inside of for: only at the top level"));
    EXPECT_THAT(refusal("{% macro f() %}{{ caller() }}{% endmacro %}"
                        "{% call f() %}{{ caller() }}{% endcall %}"),
                HasSubstr("a call block that uses caller"));
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

TEST(ChatTemplateAbuse, RefusesWhatWouldCrash) {
    for (const std::string text : {"{{ 1 % 0 }}", "{{ 1 // 0 }}", "{{ 1 / 0 }}", "{{ 1 % 0.5 }}",
                                   "{% set z = 0 %}{{ 1 % z }}", "{{ (1)%(0) }}"}) {
        EXPECT_THAT(refusal(text), HasSubstr("division is only allowed by a whole number")) << text;
    }
    EXPECT_THAT(refusal("{{ 'abc'[9:0:-1] }}"), HasSubstr("a slice with a step"));
    EXPECT_THAT(refusal("{{ 'abc'.split('') }}"), HasSubstr("split by an empty string"));
    EXPECT_THAT(refusal("{{ range(0, 1000000000000) }}"), HasSubstr("more than 100000 numbers"));
    EXPECT_THAT(refusal("{{ range(5, 0, 0) }}"), HasSubstr("range of more than"));
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
