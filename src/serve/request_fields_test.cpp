#include "serve/request_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/request_error_for_test.h"

namespace pleat {
namespace {

using nlohmann::ordered_json;
using test::json;
using test::Refusal;
using test::refusal_of;
using testing::HasSubstr;

std::string refused_body(const std::string& body, const RequestLimits& limits = {}) {
    const Refusal refusal = refusal_of([&] { parse_body(body, limits); });
    EXPECT_EQ(refusal.status, 400);
    EXPECT_EQ(refusal.param, "");
    return refusal.message;
}

TEST(Body, IsAJsonObject) {
    EXPECT_EQ(parse_body(R"({"a": [1, {"b": "\"}]"}]})", {}), json(R"({"a":[1,{"b":"\"}]"}]})"));
    EXPECT_THAT(refused_body("[1]"), HasSubstr("must be a JSON object, but is an array"));
    EXPECT_THAT(refused_body(R"({"a": 1)"), HasSubstr("not valid JSON (at byte"));
    EXPECT_THAT(refused_body(""), HasSubstr("not valid JSON"));
    EXPECT_THAT(refused_body("{} {}"), HasSubstr("not valid JSON"));
    EXPECT_THAT(refused_body(R"({"a": NaN})"), HasSubstr("not valid JSON"));
}

TEST(Body, IsValidUtf8) {
    EXPECT_THAT(refused_body("{\"a\": \"\xC3\"}"), HasSubstr("UTF-8"));
    EXPECT_THAT(refused_body("{\"a\": \"\xED\xA0\x80\"}"), HasSubstr("UTF-8"));
    EXPECT_THAT(refused_body(R"({"a": "\ud800"})"), HasSubstr("not valid JSON"));
}

TEST(Body, MayNotBeNestedWithoutEnd) {
    EXPECT_THAT(refused_body(std::string(100'000, '[')), HasSubstr("more than 128 deep"));
    EXPECT_THAT(refused_body("{\"a\":" + std::string(100'000, '[')), HasSubstr("128 deep"));
    std::string deepest = "1";
    for (int i = 0; i < 127; ++i) deepest = "[" + deepest + "]";
    EXPECT_NO_THROW(parse_body("{\"a\":" + deepest + "}", {}));
    EXPECT_THAT(refused_body("{\"a\":[" + deepest + "]}"), HasSubstr("128 deep"));
}

TEST(Body, BracketsInTextsDoNotNest) {
    EXPECT_NO_THROW(parse_body("{\"a\": \"" + std::string(1000, '[') + "\\\"[\"}", {}));
}

TEST(Body, HasBoundedMembersAndValues) {
    const RequestLimits limits{.json_members = 3, .json_all_members = 5, .json_values = 20};
    EXPECT_NO_THROW(parse_body(R"({"a":1,"b":{"c":1,"d":2}})", limits));
    EXPECT_THAT(refused_body(R"({"a":1,"b":2,"c":3,"d":4})", limits), HasSubstr("more than 3"));
    EXPECT_THAT(refused_body(R"({"a":{"a":1,"b":2},"b":{"a":1,"b":2}})", limits),
                HasSubstr("more than 5 members in all"));
    EXPECT_THAT(refused_body("{\"a\":[" + std::string(40, ',') + "]}", limits),
                HasSubstr("more than 20 values"));
}

TEST(Body, HasNoNumberBeyondDoubles) {
    EXPECT_THAT(refused_body(R"({"a": 1e400})"), HasSubstr("too large"));
}

TEST(FieldValues, NameWhatIsWrongWithThem) {
    struct Case {
        std::string value;
        void (*read)(const ordered_json&);
        std::string message;
    };
    const auto integer = [](const ordered_json& v) { as_integer(v, "p", -2, 5); };
    const auto number = [](const ordered_json& v) { as_number(v, "p", 0, 1); };
    const std::vector<Case> cases{
        {"\"x\"", [](const ordered_json& v) { as_boolean(v, "p"); },
         "p: must be a boolean, but is a string"},
        {"1", [](const ordered_json& v) { as_boolean(v, "p"); },
         "p: must be a boolean, but is a number"},
        {"true", integer, "p: must be an integer, but is a boolean"},
        {"1.5", integer, "p: must be an integer"},
        {"6", integer, "p: must be between -2 and 5, but is 6"},
        {"-3", integer, "p: must be between -2 and 5, but is -3"},
        {"9223372036854775808", integer, "p: must be between -2 and 5, but is 9223372036854775808"},
        {"1e300", integer, "p: must be between -2 and 5, but is 1e+300"},
        {"-1e300", integer, "p: must be between -2 and 5, but is -1e+300"},
        {"[]", number, "p: must be a number, but is an array"},
        {"1.01", number, "p: must be between 0 and 1, but is 1.01"},
        {"{}", [](const ordered_json& v) { as_text(v, "p"); },
         "p: must be a string, but is an object"},
        {"1", [](const ordered_json& v) { as_array(v, "p", 1); },
         "p: must be an array, but is a number"},
        {"[1,2]", [](const ordered_json& v) { as_array(v, "p", 1); },
         "p: has 2 elements, at most 1"},
        {"[]", [](const ordered_json& v) { as_object(v, "p"); },
         "p: must be an object, but is an array"},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.value);
        const Refusal refusal = refusal_of([&] { c.read(json(c.value)); });
        EXPECT_EQ(refusal.message, c.message);
        EXPECT_EQ(refusal.param, "p");
        EXPECT_EQ(refusal.status, 400);
    }
}

TEST(FieldValues, WholeNumbersMayHaveAPoint) {
    EXPECT_EQ(as_integer(json("3.0"), "p", 0, 5), 3);
    EXPECT_EQ(as_integer(json("-9223372036854775808"), "p", INT64_MIN, INT64_MAX), INT64_MIN);
}

TEST(FieldsOfAnObject, ThatAreNullAreNotThere) {
    const ordered_json object = json(R"({"a": null, "b": false, "c": ["x", "y"]})");
    const Fields fields(object);
    EXPECT_FALSE(fields.has("a"));
    EXPECT_FALSE(fields.boolean("a").has_value());
    EXPECT_TRUE(fields.boolean("a", true));
    EXPECT_FALSE(fields.boolean("b", true));
    EXPECT_EQ(fields.integer("missing", 0, 1), std::nullopt);
    EXPECT_EQ(fields.text("missing"), std::nullopt);
    EXPECT_THAT(*fields.texts("c", 2), testing::ElementsAre("x", "y"));
    EXPECT_EQ(refusal_of([&] { fields.texts("c", 1); }).param, "c");
}

TEST(FieldsOfAnObject, NameTheirPath) {
    const ordered_json object = json(R"({"a": [1, "x"]})");
    const Fields fields(object, "outer");
    EXPECT_EQ(refusal_of([&] { fields.boolean("a"); }).param, "outer.a");
    EXPECT_EQ(refusal_of([&] { fields.texts("a", 9); }).param, "outer.a[0]");
    EXPECT_EQ(refusal_of([&] { Fields(object.at("a"), "outer.a"); }).message,
              "outer.a: must be an object, but is an array");
}

}  // namespace
}  // namespace pleat
