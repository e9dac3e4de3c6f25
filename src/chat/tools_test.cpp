#include "chat/tools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/demo_model_for_test.h"

namespace pleat {
namespace {

using test::message_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Optional;
using Json = nlohmann::ordered_json;

std::string refusal(std::string_view tools) {
    return message_of([&] { read_tools(Json::parse(tools)); });
}

TEST(Tools, AreReadWithTheirSchemas) {
    const auto tools = read_tools(Json::parse(
        R"([{"type": "function", "function": {"name": "a", "parameters":
            {"type": "object", "properties": {"x": {"type": "string"}}}}},
            {"function": {"name": "b"}}])"));
    ASSERT_EQ(tools.size(), 2U);
    EXPECT_EQ(tools[0].name, "a");
    EXPECT_EQ(tools[0].parameters["additionalProperties"], false);
    EXPECT_EQ(tools[1].parameters, Json::parse(R"({"type": "object", "properties": {},
                                                  "additionalProperties": false})"));
    EXPECT_THAT(text_parameters(tools), ElementsAre(testing::Pair("a", "x")));
}

TEST(Tools, ThatAreMalformedAreRefusedByName) {
    EXPECT_EQ(refusal("{}"), "tools: must be a list");
    EXPECT_THAT(refusal("[1]"), HasSubstr("tools[0]: must be {\"type\": \"function\""));
    EXPECT_THAT(refusal(R"([{"type": "retrieval"}])"), HasSubstr("tools[0]"));
    EXPECT_THAT(refusal(R"([{"function": {"name": "a b"}}])"), HasSubstr("tools[0].function.name"));
    EXPECT_THAT(refusal(R"([{"function": {"name": "a"}}, {"function": {"name": "a"}}])"),
                HasSubstr("tools[1].function.name: \"a\" comes twice"));
    EXPECT_THAT(refusal(R"([{"function": {"name": "a", "parameters": {"type": "array"}}}])"),
                HasSubstr("parameters: must be of type object"));
    EXPECT_THAT(refusal(R"([{"function": {"name": "a", "parameters": 3}}])"),
                HasSubstr("must be a JSON Schema"));
}

TEST(BareTexts, AreThoseThatNeedNoQuotes) {
    const auto of = [](std::string_view schema) { return bare_texts(Json::parse(schema)); };
    EXPECT_THAT(of(R"({"type": "string", "description": "x"})"), Optional(IsEmpty()));
    EXPECT_THAT(of(R"({"type": "string", "enum": ["a", "b c"]})"),
                Optional(ElementsAre("a", "b c")));
    for (const std::string_view schema :
         {R"({"type": "string", "maxLength": 3})", R"({"type": ["string", "null"]})", R"({})",
          R"(true)", R"({"type": "integer"})", R"({"type": "string", "enum": ["a", "b<"]})",
          R"({"type": "string", "enum": ["a", 1]})", R"({"type": "string", "enum": [""]})"}) {
        EXPECT_EQ(of(schema), std::nullopt) << schema;
    }
}

}  // namespace
}  // namespace pleat
