#include "chat/chat_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

namespace pleat {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

const ReasoningMarks think{"<think>", "</think>"};

ChatSyntax syntax_of(ToolForm form) {
    return {.tools = form,
            .reasoning = think,
            .tool_names = {"get_weather", "send"},
            .text_parameters = {{"send", "text"}, {"get_weather", "city"}}};
}

ChatAnswer parse(ToolForm form, std::string_view text) {
    return parse_answer(syntax_of(form), 1, text);
}

/// "name(arguments)" of every call.
std::vector<std::string> calls_of(const ChatAnswer& answer) {
    std::vector<std::string> calls;
    for (const ToolCall& call : answer.calls) calls.push_back(call.name + call.arguments);
    return calls;
}

/// The same text in pieces that end after the bytes whose `cut` is true.
ChatAnswer parse_cut(const ChatSyntax& syntax, std::string_view text,
                     const std::function<bool()>& cut) {
    ChatParser parser(syntax, 1);
    ChatAnswerBuilder builder;
    std::string part;
    for (const char c : text) {
        part += c;
        if (!cut()) continue;
        builder.add(parser.feed(part));
        part.clear();
    }
    builder.add(parser.feed(part));
    builder.add(parser.finish());
    EXPECT_EQ(parser.n_calls(), builder.answer().calls.size());
    return builder.answer();
}

TEST(ChatParser, PassesTextWithoutSyntaxOnAsItIs) {
    EXPECT_EQ(parse_answer({}, 1, " a\n<think>b</think> <tool_call>\n").content,
              " a\n<think>b</think> <tool_call>\n");
}

TEST(ChatParser, SplitsReasoningOut) {
    const ChatAnswer answer = parse(ToolForm::none, "\n<think>\nhm\n\nso\n</think>\n\n4.\n");
    EXPECT_EQ(answer.reasoning, "hm\n\nso");
    EXPECT_EQ(answer.content, "4.\n");
}

TEST(ChatParser, KnowsThatThePromptOpenedTheReasoning) {
    ChatSyntax syntax{.reasoning = think, .reasoning_open = true};
    EXPECT_EQ(parse_answer(syntax, 1, "hm</think>4").reasoning, "hm");
    EXPECT_EQ(parse_answer(syntax, 1, "hm</think>4").content, "4");
    EXPECT_EQ(parse_answer(syntax, 1, "<think>hm</think>4").reasoning, "hm");
    EXPECT_EQ(parse_answer(syntax, 1, "hm ").reasoning, "hm ");
    EXPECT_EQ(parse_answer(syntax, 1, "hm </thin").reasoning, "hm </thin");
    EXPECT_EQ(parse_answer(syntax, 1, "</think>4").content, "4");
}

TEST(ChatParser, LeavesMarksInTheMiddleOfContent) {
    const std::string text = "to <think>, say </think> and <think";
    EXPECT_EQ(parse(ToolForm::none, text).content, text);
    EXPECT_EQ(parse(ToolForm::none, "  <thin").content, "  <thin");
}

TEST(ChatParser, ShowsTextAsSoonAsItIsDecided) {
    ChatParser parser(syntax_of(ToolForm::hermes), 1);
    EXPECT_EQ(parser.feed("<thi").content, "");
    EXPECT_EQ(parser.feed("nk>a b ").reasoning, "a b");
    EXPECT_EQ(parser.feed("</").reasoning, "");
    EXPECT_EQ(parser.feed("b").reasoning, " </b");
    EXPECT_EQ(parser.feed("</think> c<").content, "c");
    EXPECT_EQ(parser.feed("d").content, "<d");
}

TEST(ChatParserHermes, ReadsCalls) {
    const ChatAnswer answer = parse(ToolForm::hermes,
                                    "Let me see.\n<tool_call>\n"
                                    R"({"name": "get_weather", "arguments": {"city": "Ulm"}})"
                                    "\n</tool_call>\n<tool_call>\n"
                                    R"({"arguments": {"text": "a\n\"b\""}, "name": "send"})"
                                    "\n</tool_call>\n");
    EXPECT_EQ(answer.content, "Let me see.");
    EXPECT_THAT(calls_of(answer), testing::ElementsAre(R"(get_weather{"city": "Ulm"})",
                                                       R"(send{"text": "a\n\"b\""})"));
    EXPECT_NE(answer.calls[0].id, answer.calls[1].id);
    EXPECT_THAT(answer.calls[0].id, testing::MatchesRegex("call_[0-9A-Za-z]+"));
}

TEST(ChatParserHermes, TakesArgumentsThatAreTextOrMissing) {
    EXPECT_THAT(
        calls_of(parse(ToolForm::hermes,
                       R"(<tool_call>{"name":"send","arguments":"{\"a\":1}"}</tool_call>)")),
        testing::ElementsAre(R"(send{"a":1})"));
    EXPECT_THAT(calls_of(parse(ToolForm::hermes, R"(<tool_call>{"name":"send"}</tool_call>)")),
                testing::ElementsAre("send{}"));
    EXPECT_THAT(calls_of(parse(ToolForm::hermes, R"(<tool_call>{"id":7,"name":"send",)"
                                                 R"("parameters":{"b":[]}})")),
                testing::ElementsAre(R"(send{"b":[]})"));
}

TEST(ChatParserHermes, StreamsArguments) {
    ChatParser parser(syntax_of(ToolForm::hermes), 1);
    EXPECT_TRUE(parser.feed("<tool_call>{\"name\": \"se").empty());
    const ChatDelta named = parser.feed("nd\", ");
    ASSERT_THAT(named.calls, SizeIs(1));
    EXPECT_EQ(named.calls[0].name, "send");
    EXPECT_EQ(named.calls[0].arguments, "");
    EXPECT_FALSE(named.calls[0].id.empty());
    const ChatDelta more = parser.feed("\"arguments\": {\"te");
    ASSERT_THAT(more.calls, SizeIs(1));
    EXPECT_EQ(more.calls[0].arguments, "{\"te");
    EXPECT_EQ(more.calls[0].id, "");
    EXPECT_EQ(parser.feed("xt\": 1}").calls.at(0).arguments, "xt\": 1}");
    EXPECT_EQ(parser.n_calls(), 0U);
    EXPECT_TRUE(parser.feed("}</tool_call>").empty());
    EXPECT_EQ(parser.n_calls(), 1U);
}

TEST(ChatParserHermes, MakesWhatIsNoCallContent) {
    for (const std::string text : {
             R"(a <tool_call>b)",
             R"(<tool_call>{"name": "nobody", "arguments": {}}</tool_call>)",
             R"(<tool_call>{"name": "send", "arguments": {"a": 01}}</tool_call>)",
             R"(<tool_call>{"name": "send", "arguments": {"a": )",
             R"(<tool_call>{"name": "send", "arguments": [1]}</tool_call>)",
             R"(<tool_call>{"name": "send", "arguments": "no"}</tool_call>)",
             R"(<tool_call>{"name": "send", "arguments": {}, "parameters": {}}</tool_call>)",
             R"(<tool_call>{"name": "send", "name": "send"}</tool_call>)",
             R"(<tool_call>{"name": "send", "arguments": {}}}</tool_call>)",
             R"(<tool_call>{"name": "send", "arguments": {"a": "\ud800"}}</tool_call>)",
             R"(<tool_call>{"arguments": {}}</tool_call>)",
             R"(<tool_call>)",
             R"(  <tool_c)",
         }) {
        const ChatAnswer answer = parse(ToolForm::hermes, text);
        EXPECT_EQ(answer.content, text);
        EXPECT_THAT(answer.calls, IsEmpty());
    }
}

TEST(ChatParserHermes, TellsOfACallThatBreaksOff) {
    ChatParser parser(syntax_of(ToolForm::hermes), 1);
    EXPECT_THAT(parser.feed(R"(<tool_call>{"name": "send", "arguments": {"a": 1)").calls,
                SizeIs(1));
    const ChatDelta end = parser.finish();
    EXPECT_THAT(end.broken_calls, testing::ElementsAre(0U));
    EXPECT_EQ(end.content, R"(<tool_call>{"name": "send", "arguments": {"a": 1)");
    EXPECT_EQ(parser.n_calls(), 0U);
}

TEST(ChatParserHermes, LeavesABrokenCallToldWhereNothingIsTakenBack) {
    ChatSyntax syntax = syntax_of(ToolForm::hermes);
    syntax.takes_back = false;
    const std::string begun = R"(<tool_call>{"name": "send", "arguments": {"a": 1)";
    ChatParser told(syntax, 1);
    EXPECT_THAT(told.feed(begun).calls, SizeIs(1));
    const ChatDelta end = told.finish();
    EXPECT_EQ(end.content, "");
    EXPECT_THAT(end.broken_calls, testing::ElementsAre(0U));
    EXPECT_EQ(told.n_calls(), 0U);

    ChatParser bad(syntax, 1);
    EXPECT_THAT(bad.feed(begun).calls, SizeIs(1));
    EXPECT_EQ(bad.feed("} x y").content, "x y");

    ChatParser untold(syntax, 1);  // all of it in one go: nobody has seen the call yet
    const ChatDelta at_once = untold.feed(begun + "} x y");
    EXPECT_THAT(at_once.calls, IsEmpty());
    EXPECT_EQ(at_once.content, begun + "} x y");
}

TEST(ChatParserHermes, GoesOnAfterWhatIsNoCall) {
    const ChatAnswer answer =
        parse(ToolForm::hermes,
              R"(<tool_call>x <tool_call>{"name": "send", "arguments": {}}</tool_call>y)");
    EXPECT_EQ(answer.content, "<tool_call>xy");
    EXPECT_THAT(calls_of(answer), testing::ElementsAre("send{}"));
}

TEST(ChatParserHermes, LooksForCallsBehindTheReasoningOnly) {
    const ChatAnswer answer = parse(
        ToolForm::hermes,
        R"(<think>a <tool_call>{"name": "send"}</tool_call></think><tool_call>{"name":"send"})");
    EXPECT_EQ(answer.reasoning, R"(a <tool_call>{"name": "send"}</tool_call>)");
    EXPECT_THAT(answer.calls, SizeIs(1));
}

TEST(ChatParserLlama3, ReadsACallThatStandsAlone) {
    EXPECT_THAT(
        calls_of(parse(ToolForm::llama3, R"(  {"name": "send", "parameters": {"text": "{}"}})")),
        testing::ElementsAre(R"(send{"text": "{}"})"));
    EXPECT_THAT(
        calls_of(parse(ToolForm::llama3, R"(<|python_tag|>{"type": "function", "name": "send"}; )"
                                         R"({"name": "get_weather", "parameters": {}})")),
        testing::ElementsAre("send{}", "get_weather{}"));
}

TEST(ChatParserLlama3, LeavesOtherTextAlone) {
    for (const std::string text :
         {R"({"name": "Bob", "age": 3})", R"(See: {"name": "send", "parameters": {}})",
          "<|python_tag|>print(1)", "{", "; {\"name\": \"send\"}"}) {
        const ChatAnswer answer = parse(ToolForm::llama3, text);
        EXPECT_EQ(answer.content, text);
        EXPECT_THAT(answer.calls, IsEmpty());
    }
}

TEST(ChatParserQwen35, ReadsCalls) {
    const ChatAnswer answer =
        parse(ToolForm::qwen35,
              "<tool_call>\n<function=send>\n<parameter=text>\n1 < 2\n\"two\"\n\n</parameter>\n"
              "<parameter=n>\n3\n</parameter>\n<parameter=flag>true</parameter>\n"
              "<parameter=note>\nhm\n</parameter>\n<parameter=list>\n[1, {\"a\": null}]\n"
              "</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=get_weather>\n"
              "<parameter=city>\n12\n</parameter>\n</function>\n</tool_call>");
    EXPECT_EQ(answer.content, "");
    EXPECT_THAT(calls_of(answer),
                testing::ElementsAre(R"(send{"text": "1 < 2\n\"two\"\n", "n": 3, "flag": true, )"
                                     R"("note": "hm", "list": [1, {"a": null}]})",
                                     R"(get_weather{"city": "12"})"));
}

TEST(ChatParserQwen35, NeedsNoOuterTag) {
    EXPECT_THAT(calls_of(parse(ToolForm::qwen35, "a\n<function=send>\n</function>b")),
                testing::ElementsAre("send{}"));
}

TEST(ChatParserQwen35, StreamsTexts) {
    ChatParser parser(syntax_of(ToolForm::qwen35), 1);
    parser.feed("<tool_call><function=send><parameter=text>\nab");
    EXPECT_EQ(parser.feed("c\"\n").calls.at(0).arguments, "c\\\"");
    EXPECT_TRUE(parser.feed("</par").empty());
    EXPECT_EQ(parser.feed("x").calls.at(0).arguments, "\\n</parx");
    EXPECT_EQ(parser.feed("\n</parameter></function></tool_call>").calls.at(0).arguments, "\"}");
}

TEST(ChatParserQwen35, MakesWhatIsNoCallContent) {
    for (const std::string text :
         {"<tool_call>\n<function=nobody>\n</function>", "<tool_call>\n<fun", "<function=send>x",
          "<tool_call>\n<function=send>\n<parameter=a>1</parameter><parameter=a>1</parameter>",
          "<tool_call>\n<function=send>\n<parameter=>1</parameter>", "<tool_call>{}",
          "<tool_call>\n<function=send>\n<parameter=text>\nabc", "<function=\n>"}) {
        const ChatAnswer answer = parse(ToolForm::qwen35, text);
        EXPECT_EQ(answer.content, text);
        EXPECT_THAT(answer.calls, IsEmpty());
    }
}

TEST(ChatParserGemma4, ReadsCalls) {
    const ChatAnswer answer = parse(ToolForm::gemma4,
                                    "<|tool_call>call:send{text:<|\"|>a "
                                    "\"b\"\n<|\"|>,n:3,list:[1.5,{a:true,<|\"|>b c<|\"|>:None}],"
                                    "\"json\":{\"x\":\"\\n\"},empty:{},none:[]}<tool_call|><|tool_"
                                    "call>call:get_weather{}<tool_call|>");
    EXPECT_EQ(answer.content, "");
    EXPECT_THAT(
        calls_of(answer),
        testing::ElementsAre(R"(send{"text": "a \"b\"\n", "n": 3, "list": [1.5, {"a": true, )"
                             R"("b c": null}], "json": {"x": "\n"}, "empty": {}, "none": []})",
                             "get_weather{}"));
}

TEST(ChatParserGemma4, MakesWhatIsNoCallContent) {
    for (const std::string text :
         {"<|tool_call>call:nobody{}<tool_call|>", "<|tool_call>call:send{a:Ulm}<tool_call|>",
          "<|tool_call>call:send{a:1]<tool_call|>", "<|tool_call>call:send{a:<|x}",
          "<|tool_call>{}", "<|tool_call>call:send{a:1,}<tool_call|>",
          "<|tool_call>call:send{a:<|\"|>b"}) {
        const ChatAnswer answer = parse(ToolForm::gemma4, text);
        EXPECT_EQ(answer.content, text);
        EXPECT_THAT(answer.calls, IsEmpty());
    }
}

/// Texts made of what matters to the forms, often valid for a good part.
std::string random_text(std::mt19937& rng) {
    static const std::vector<std::string> parts{"<think>",
                                                "</think>",
                                                "<tool_call>",
                                                "</tool_call>",
                                                "\n",
                                                " ",
                                                "{",
                                                "}",
                                                "\"",
                                                "\"name\"",
                                                ": ",
                                                ", ",
                                                "\"send\"",
                                                "\"arguments\"",
                                                "{\"name\": \"send\", \"arguments\": {",
                                                "\"a\": \"b\"",
                                                "}}",
                                                "[1, 2.5e3]",
                                                "<function=",
                                                "send",
                                                ">",
                                                "<function=send>",
                                                "<parameter=text>",
                                                "<parameter=n>",
                                                "</parameter>",
                                                "</function>",
                                                "3",
                                                "true",
                                                "\\n",
                                                "\\u00e9",
                                                "\xC3\xA9",
                                                "\xE2\x82",
                                                "\xFF",
                                                "<",
                                                "<|python_tag|>",
                                                ";",
                                                "x",
                                                "<|tool_call>",
                                                "call:send{",
                                                "<|\"|>",
                                                "<tool_call|>",
                                                "text:",
                                                "get_weather",
                                                "</",
                                                "\t"};
    std::string text;
    for (size_t n = rng() % 40; n > 0; --n) text += parts[rng() % parts.size()];
    return text;
}

TEST(ChatParserProperty, TheCutsPlayNoPart) {
    for (uint32_t seed = 0; seed < 4000; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 rng(seed);
        ChatSyntax syntax = syntax_of(static_cast<ToolForm>(rng() % 5));
        if (rng() % 2) syntax.reasoning = {};
        syntax.reasoning_open = rng() % 2;
        const std::string text = random_text(rng);
        SCOPED_TRACE(text);
        const ChatAnswer whole = parse_answer(syntax, 1, text);
        EXPECT_EQ(parse_cut(syntax, text, [] { return true; }), whole);
        EXPECT_EQ(parse_cut(syntax, text, [&] { return rng() % 5 == 0; }), whole);
        for (const ToolCall& call : whole.calls) {
            EXPECT_TRUE(nlohmann::json::parse(call.arguments, nullptr, false).is_object())
                << call.arguments;
        }
    }
}

}  // namespace
}  // namespace pleat
