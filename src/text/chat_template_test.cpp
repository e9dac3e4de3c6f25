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
    const auto nested = [](int n) {
        return "{% set n = namespace(a=1) %}{% for i in range(" + std::to_string(n) +
               ") %}{% set n.a = [n.a] %}{% endfor %}";
    };
    EXPECT_EQ(render(nested(40000) + "{{ n.a | length }}"), "1");
    EXPECT_EQ(render(nested(999) + "{{ (n.a | tojson) | length }}"), "1999");
    for (const std::string use : {"n.a | tojson", "n.a", "n.a == [n.a]", "[n.a, n.a] | sort"}) {
        EXPECT_THAT(refusal(nested(40000) + "{{ " + use + " }}"),
                    HasSubstr("values nest more than 1000 deep"))
            << use;
    }
}

TEST(ChatTemplateAbuse, EndsValuesThatHoldThemselves) {
    const std::string list = "{% set l = [] %}{% set _ = l.append(l) %}";
    const std::string mapping = "{% set ns = namespace() %}{% set ns.a = ns %}";
    const std::string both =
        "{% set l = [] %}{% set ns = namespace(b=l) %}"
        "{% set _ = l.append({'c': ns}) %}";
    for (const std::string& text :
         {list + "{{ l }}",
          list + "{{ l | tojson }}",
          list + "{{ l | string }}",
          list + "{{ l | join }}",
          list + "{{ '' ~ l }}",
          list + "{{ '%s' % [l] }}",
          list + "{{ '%r' % [l] }}",
          list + "{{ '{}'.format(l) }}",
          list + "{{ l | map('string') }}",
          list + "{{ l == [l] }}",
          list + "{{ l in [[l]] }}",
          list + "{{ [l, l] | sort }}",
          list + "{{ [l, [l]] | unique }}",
          list + "{{ l.count([l]) }}",
          list + "{{ [l, l] | max }}",
          mapping + "{{ ns }}",
          mapping + "{{ ns | tojson }}",
          mapping + "{{ ns == dict(a=ns) }}",
          mapping + "{{ [ns] | join }}",
          both + "{{ l }}",
          both + "{{ ns | tojson }}",
          std::string("{% set ns = namespace() %}{% set ns.a = [ns] %}{{ ns | tojson }}")}) {
        EXPECT_THAT(refusal(text), HasSubstr("values nest more than 1000 deep")) << text;
    }
    EXPECT_EQ(render(list + "{{ l | length }}{{ l[0][0] | length }}"), "11");
}

TEST(ChatTemplate, FreesValuesThatHoldThemselves) {  // which a leak checker sees
    EXPECT_EQ(render("{% for i in [1, 2] %}{{ loop.changed(loop) }}{% endfor %}"), "TrueTrue");
    EXPECT_EQ(render("{% set l = [] %}{% for i in [1] %}{% set _ = l.append(loop.changed) %}"
                     "{{ loop.changed(l) }}{% endfor %}"),
              "True");
    EXPECT_EQ(render("{% set ns = namespace() %}{% macro f() %}{% set ns.a = caller %}"
                     "{{ caller() }}{% endmacro %}{% call f() %}x{% endcall %}"),
              "x");
}

TEST(ChatTemplate, HasAFreshEmptyTupleInEachRendering) {
    const ChatTemplate chat("{% set t = () %}{% set _ = t.append(1) %}{{ t }}", "", "");
    EXPECT_EQ(chat.render(talk, true), chat.render(talk, true));
}

TEST(ChatTemplateAbuse, NamesTheBoundOfWidths) {
    for (const std::string text :
         {"{{ 'a' | indent(1000000000000) }}", "{{ 'a'.ljust(10001) }}", "{{ 'a'.rjust(10001) }}",
          "{{ 'a'.zfill(10001) }}", "{{ '%1000000000d' % 1 }}", "{{ '%.1000000000f' % 1 }}",
          "{{ {} | tojson(indent=10001) }}"}) {
        EXPECT_THAT(refusal(text), HasSubstr("a width of more than 10000 characters")) << text;
    }
    EXPECT_EQ(render("{{ 'a'.ljust(-1) }}{{ '-1'.zfill(4) }}{{ '%3d|%-3d|' % [1, 2] }}"),
              "a-001  1|2  |");
    EXPECT_EQ(render("{{ strftime_now('x' * 4094) | length }}{{ strftime_now('') }}"), "4094");
    EXPECT_THAT(refusal("{{ strftime_now('x' * 4095) }}"),
                HasSubstr("strftime_now makes more than 4094 bytes"));
    EXPECT_THAT(refusal("{{ ('{0}' * 1000).format('x' * 100000) }}"), HasSubstr("16 MiB"));
    EXPECT_THAT(refusal("{{ ('%s' * 200) % (['x' * 100000] * 200) }}"), HasSubstr("16 MiB"));
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
