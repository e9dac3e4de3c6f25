#include "serve/constraint_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schema/json_schema.h"
#include "serve/request_error_for_test.h"
#include "text/demo_model_for_test.h"

namespace pleat {
namespace {

using nlohmann::ordered_json;
using test::json;
using test::Refusal;
using test::refusal_of;

std::string read(const std::string& text) {
    const ordered_json object = json(text);
    return constraint_fields(Fields(object));
}

Refusal refused(const std::string& text) {
    return refusal_of([&] { read(text); });
}

const std::string schema = R"({"type": "integer"})";
const std::string integer = json_schema_grammar(json(schema));

TEST(Constraint, IsNothingWhereNothingIsAskedFor) {
    EXPECT_EQ(read("{}"), "");
    EXPECT_EQ(read(R"({"grammar": ""})"), "");
    EXPECT_EQ(read(R"({"response_format": {"type": "text"}})"), "");
    EXPECT_EQ(read(R"({"response_format": null, "json_schema": null, "grammar": null})"), "");
}

TEST(Constraint, ComesFromOneOfThreeFields) {
    EXPECT_EQ(read(R"({"grammar": "root ::= \"a\""})"), "root ::= \"a\"");
    EXPECT_EQ(read(R"({"json_schema": )" + schema + "}"), integer);
    EXPECT_EQ(read(R"({"response_format": {"type": "json_object"}})"), json_object_grammar());
    EXPECT_EQ(read(R"({"response_format": {"type": "json_object", "schema": )" + schema + "}}"),
              integer);
    EXPECT_EQ(read(R"({"response_format": {"type": "json_schema", "json_schema":
                       {"name": "n", "strict": true, "schema": )" +
                   schema + "}}}"),
              integer);
}

TEST(Constraint, NamesTheFieldThatIsWrong) {
    struct Case {
        std::string text;
        std::string param;
    };
    const std::vector<Case> cases{
        {R"({"grammar": 1})", "grammar"},
        {R"({"grammar": "root ::= \"a\"\u0000"})", "grammar"},
        {R"({"json_schema": {"type": "nonsense"}})", "json_schema"},
        {R"({"json_schema": {"if": {}}})", "json_schema"},
        {R"({"response_format": "json"})", "response_format"},
        {R"({"response_format": {"type": "xml"}})", "response_format.type"},
        {R"({"response_format": {"type": 1}})", "response_format.type"},
        {R"({"response_format": {"type": "json_object", "schema": {"type": 5}}})",
         "response_format.schema"},
        {R"({"response_format": {"type": "json_schema"}})", "response_format.json_schema"},
        {R"({"response_format": {"type": "json_schema", "json_schema": []}})",
         "response_format.json_schema"},
        {R"({"response_format": {"type": "json_schema", "json_schema": {}}})",
         "response_format.json_schema.schema"},
        {R"({"grammar": "root ::= \"a\"", "json_schema": {}})", "json_schema"},
        {R"({"grammar": "root ::= \"a\"", "response_format": {"type": "json_object"}})",
         "response_format"},
        {R"({"json_schema": {}, "response_format": {"type": "json_object"}})", "response_format"},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.text);
        const Refusal refusal = refused(c.text);
        EXPECT_EQ(refusal.param, c.param);
        EXPECT_EQ(refusal.status, 400);
    }
}

TEST(Constraint, AnUnsupportedKeywordIsNamed) {
    EXPECT_THAT(refused(R"({"json_schema": {"if": {}}})").message, testing::HasSubstr("if"));
}

TEST(Constraint, IsCheckedAndNamesTheFieldItCameFrom) {
    const auto check = [](const std::string& text, const std::string& grammar) {
        const ordered_json object = json(text);
        check_constraint(Fields(object), grammar, test::demo_tokenizer());
    };
    const Refusal reversed = refusal_of([&] { check(R"({"grammar": "x"})", "root ::= [z-a]"); });
    EXPECT_EQ(reversed.param, "grammar");
    EXPECT_EQ(reversed.message, "grammar: line 1, character 11: range z-a ends before it begins");
    EXPECT_EQ(refusal_of([&] { check(R"({"json_schema": {}})", "x"); }).param, "json_schema");
    EXPECT_EQ(refusal_of([&] { check(R"({"response_format": {}, "grammar": ""})", "x"); }).param,
              "response_format");
    check("{}", "");
    check(R"({"json_schema": {}})", json_object_grammar());
}

}  // namespace
}  // namespace pleat
