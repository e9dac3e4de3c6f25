#include "chat/chat_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/demo_model_for_test.h"

namespace pleat {
namespace {

using test::demo_tokenizer;
using test::message_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Json = nlohmann::ordered_json;

ChatRequest request_of(std::string_view messages) { return {.messages = Json::parse(messages)}; }

const ChatRequest hello = request_of(R"([{"role": "user", "content": "Hi"}])");

ChatFormat format_of(const std::string& text) { return ChatFormat(demo_tokenizer(), text); }

TEST(ChatFormat, IsTheFilesOwn) {
    const ChatFormat format(demo_tokenizer());
    EXPECT_THAT(format.warnings(), IsEmpty());
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

}  // namespace
}  // namespace pleat
