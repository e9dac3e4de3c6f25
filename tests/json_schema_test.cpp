// JSON Schema to grammar, by what the grammars accept.
#include "schema/json_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "support/gbnf.h"
#include "text/grammar.h"
#include "text/sampler.h"
#include "text/tokenizer.h"

namespace pleat {
namespace {

using nlohmann::ordered_json;
using testing::AllOf;
using testing::HasSubstr;

const Tokenizer& tokenizer() {
    static const Tokenizer one =
        Tokenizer::open(PLEAT_MODELS_DIR "/pleat-demo-llama-16L-q4_0.gguf");
    return one;
}

/// The grammar of a schema, which must also be one that a sampler takes.
std::string grammar_of(const std::string& schema) {
    std::string grammar = json_schema_grammar(ordered_json::parse(schema));
    check_grammar(grammar, "root", tokenizer());
    return grammar;
}

using Texts = std::vector<std::string>;

void expect(const std::string& schema, const Texts& accepted, const Texts& rejected) {
    SCOPED_TRACE(schema);
    std::string grammar;
    ASSERT_NO_THROW(grammar = grammar_of(schema));
    const test::Gbnf gbnf(grammar);
    for (const std::string& text : accepted) EXPECT_TRUE(gbnf.accepts(text)) << text;
    for (const std::string& text : rejected) EXPECT_FALSE(gbnf.accepts(text)) << text;
}

/// The message with which a schema is refused.
std::string refusal_of(const ordered_json& schema) {
    try {
        json_schema_grammar(schema);
    } catch (const Error& e) {
        EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos) << e.what();
        EXPECT_LT(std::string(e.what()).size(), 600U);
        return e.what();
    }
    ADD_FAILURE() << "is not refused: " << schema.dump().substr(0, 200);
    return {};
}

std::string refusal(const std::string& schema) { return refusal_of(ordered_json::parse(schema)); }

TEST(JsonGrammar, TakesAnyObjectAndNothingElse) {
    const std::string grammar = json_object_grammar();
    check_grammar(grammar, "root", tokenizer());
    const test::Gbnf gbnf(grammar);
    for (const char* text :
         {"{}", "{ }", R"({"a":1})", R"({"a": [1, 2.5e-3, {"b": null}], "": true})",
          "{\n  \"a\": \"x\",\n  \"b\": []\n}"}) {
        EXPECT_TRUE(gbnf.accepts(text)) << text;
    }
    for (const char* text : {"", "[]", "1", "{", R"({"a"})", R"({a:1})", R"({"a":1,})",
                             R"({"a":01})", R"({"a":1} )", R"({"a":.5})", "{\n\n}", R"({"a":"x)"}) {
        EXPECT_FALSE(gbnf.accepts(text)) << text;
    }
}

TEST(JsonGrammar, StringsAreValidJson) {
    expect(R"({"type":"string"})",
           {R"("")", R"("a\"\\\/\b\f\n\r\t")", R"("\u00e9\uD83D\uDE00")", "\"é漢😀\"", "\"\x7F\""},
           {"\"\n\"", "\"\x1F\"", R"("\x")", R"("\u12")", R"("\uD83D")", R"("\uDE00")",
            R"("\uD83Dx")", R"("\ud83d\u0041")", R"("a)", R"(")", "'a'"});
}

TEST(JsonGrammar, WhiteSpaceCannotGoOnForEver) {
    const std::string grammar = grammar_of(R"({"type":"array","items":{"type":"null"}})");
    const test::Gbnf gbnf(grammar);
    EXPECT_TRUE(gbnf.accepts("[\n" + std::string(32, ' ') + "null ]"));
    EXPECT_FALSE(gbnf.accepts("[\n" + std::string(33, ' ') + "null ]"));
    EXPECT_FALSE(gbnf.accepts("[  null]"));
    EXPECT_FALSE(gbnf.accepts(" []"));
    EXPECT_FALSE(gbnf.accepts("[] "));
}

TEST(JsonSchema, Type) {
    expect(R"({"type":"null"})", {"null"}, {"0", "\"null\""});
    expect(R"({"type":"boolean"})", {"true", "false"}, {"True", "null"});
    expect(R"({"type":"integer"})", {"0", "-1", "1234567890123456"},
           {"-0", "00", "1.0", "1e3", "+1"});
    expect(R"({"type":"number"})", {"0", "-0.5", "1e10", "1.5E-05", "12"},
           {"1.", ".1", "1e", "1e100", "NaN"});
    expect(R"({"type":["integer","null"]})", {"1", "null"}, {"1.5", "\"1\""});
    expect(R"({"type":["integer","number"]})", {"1", "1.5"}, {"\"1\""});
    expect("true", {"1", "null", R"({"a":[1]})"}, {"", "x"});
    expect("{}", {"1", "null", R"({"a":[1]})"}, {"", "x"});
    expect(R"({"type":"string","nullable":true})", {"null", R"("x")"}, {"1"});
    EXPECT_THAT(refusal("false"), HasSubstr("schema, #: allows no value"));
    EXPECT_THAT(refusal(R"({"type":"text"})"), HasSubstr("#/type: expected null, boolean"));
    EXPECT_THAT(refusal(R"({"type":[]})"), HasSubstr("allows no value"));
    EXPECT_THAT(refusal(R"({"nullable":true})"), HasSubstr("#/nullable: needs a type"));
    EXPECT_THAT(refusal("7"), HasSubstr("expected a schema"));
}

TEST(JsonSchema, WithoutTypeMeansWhatItsKeywordsSpeakOf) {
    expect(R"({"properties":{"a":{"minimum":3}},"required":["a"]})", {R"({"a":3})", R"({"a":3.5})"},
           {"1", R"({"a":"x"})", R"({"a":2})"});
    expect(R"({"minLength":1})", {R"("a")"}, {R"("")", "1"});
    expect(R"({"items":{"type":"null"}})", {"[]", "[null]"}, {"null"});
}

TEST(JsonSchema, EnumAndConstOfAnyValue) {
    expect(R"({"enum":["a\"b","é",1,1.5,null,true,{"k":[1,{"n":null}]},[],{}]})",
           {R"("a\"b")", R"("é")", "1", "1.5", "null", "true", R"({"k":[1,{"n":null}]})",
            "{ \"k\": [1, {\"n\": null}] }", "[]", "{}"},
           {R"("a")", "2", "false", R"({"k":[1]})", "1.50", "[ ]"});
    expect(R"({"const":"\u0000\n\u007f/"})", {"\"\\u0000\\n\x7F/\""}, {R"("")"});
    expect(R"({"type":"integer","enum":[1,"1",2,2.5,3.0],"maximum":2})", {"1", "2"},
           {"\"1\"", "2.5", "3.0"});
    expect(R"({"enum":["a","bb","ccc"],"minLength":2,"pattern":"^[a-b]"})", {R"("bb")"},
           {R"("a")", R"("ccc")"});
    expect(R"({"allOf":[{"enum":[1,2,3]},{"enum":[2,3,4]},{"const":3.0}]})", {"3.0"}, {"2", "4"});
    ordered_json many = {{"type", "string"}};
    for (int i = 0; i < 300; ++i) many["enum"].push_back(fmt::format("{}é漢{}", i % 7, i / 2));
    many["enum"].push_back("1");
    many["enum"].push_back("1é");
    const test::Gbnf gbnf(grammar_of(many.dump()));
    for (const ordered_json& one : many["enum"]) EXPECT_TRUE(gbnf.accepts(one.dump())) << one;
    for (const char* text : {R"("0é")", R"("0é漢")", R"("")", R"("2")", R"("0é漢1000")"}) {
        EXPECT_FALSE(gbnf.accepts(text)) << text;
    }
    ordered_json numbers = ordered_json::object();
    for (int i = 0; i < 200; ++i) numbers["enum"].push_back(i - 100);
    const test::Gbnf whole(grammar_of(numbers.dump()));
    for (int i = -300; i < 300; ++i) {
        EXPECT_EQ(whole.accepts(std::to_string(i)), i >= -100 && i < 100) << i;
    }
    EXPECT_THAT(refusal(R"({"enum":[]})"), HasSubstr("#/enum: expected a non-empty array"));
    EXPECT_THAT(refusal(R"({"type":"integer","const":"x"})"), HasSubstr("allows no value"));
}

TEST(JsonSchema, StringLengthsCountCharacters) {
    expect(R"({"type":"string","minLength":2,"maxLength":3})",
           {R"("ab")", R"("😀é漢")", R"("\n\u0041")", R"("\uD83D\uDE00\\a")"},
           {R"("a")", R"("abcd")", R"("\uD83D\uDE00")"});
    const auto text = [](size_t n) { return '"' + std::string(n, 'x') + '"'; };
    expect(R"({"type":"string","minLength":70,"maxLength":1000})",
           {text(70), text(128), text(129), text(999), text(1000)},
           {text(0), text(69), text(1001)});
    expect(R"({"type":"string","minLength":300})", {text(300), text(5000)}, {text(299)});
    expect(R"({"type":"string","maxLength":128})", {text(0), text(64), text(128)}, {text(129)});
    expect(R"({"type":"string","maxLength":1e30})", {text(1000)}, {});
    expect(R"({"type":"string","maxLength":0})", {R"("")"}, {R"("a")"});
    EXPECT_THAT(refusal(R"({"type":"string","minLength":2,"maxLength":1})"),
                HasSubstr("allows no value"));
    EXPECT_THAT(refusal(R"({"minLength":-1})"), HasSubstr("#/minLength: expected a whole number"));
    EXPECT_THAT(refusal(R"({"minLength":1.5})"), HasSubstr("#/minLength: expected a whole number"));
    EXPECT_THAT(refusal(R"({"minLength":1e300})"), HasSubstr("more than 65536"));
}

TEST(JsonSchema, Pattern) {
    expect(R"({"pattern":"^[a-c]+\\d{2,3}(x|yz)?$"})", {R"("a12")", R"("abc123yz")"},
           {R"("12")", R"("a1")", R"("a1234")", R"("a12xx")", R"("A12")"});
    expect(R"({"pattern":"b"})", {R"("b")", R"("abc")", R"("\"b\\")", R"("éb😀")"},
           {R"("ac")", R"("")"});
    expect(R"({"pattern":"^a|b$"})", {R"("ax")", R"("xb")"}, {R"("xa")", R"("bx")"});
    expect(R"-({"pattern":"(^a$|^b$)"})-", {R"("a")", R"("b")"}, {R"("ab")", R"("")"});
    expect(R"({"pattern":""})", {R"("")", R"("x")"}, {"1"});
    expect(R"({"pattern":"^$"})", {R"("")"}, {R"("x")"});
    expect(R"({"pattern":"^\\S\\W\\D$"})", {R"("a-b")", R"("\\\"é")"},
           {R"(" -b")", R"("a_b")", R"("a-1")"});
    expect(R"({"pattern":"^[^a]$"})", {R"("b")", R"("\"")", R"("\n")", R"("\u0001")", R"("😀")"},
           {R"("a")", R"("\u0061")"});
    expect(R"({"pattern":"^.$"})", {R"("a")", R"("\t")"}, {R"("\n")", R"("\r")", R"("ab")"});
    expect(R"({"pattern":"^\\u00e9\\x41\\.\\/[\\]\\-^]\\u{1F600}$"})",
           {R"("éA./]😀")", R"("éA./^😀")", R"("éA./-😀")"}, {R"("eA./]😀")"});
    expect(R"({"pattern":"^\"\\\\[\"\\\\]$"})", {R"("\"\\\"")", R"("\"\\\\")"}, {R"("\"\\a")"});
    expect(R"({"pattern":"^(?:ab){2}(?<n>c)*?$"})", {R"("abab")", R"("ababcc")"}, {R"("ab")"});
    expect(R"({"pattern":"^(a*)*(b?c?)+(d?){2,4}$"})", {R"("")", R"("aabccbdd")"},
           {R"("e")", R"("ddddd")"});
    expect(R"({"pattern":"^((a|b?)*c?){0,5}$"})", {R"("")", R"("abcabc")"}, {R"("abcx")"});
    expect(R"({"pattern":"^(a?b?){2}$"})", {R"("")", R"("abab")", R"("ba")"},
           {R"("ababa")", R"("bab\"")", R"("baba")"});
    expect(R"({"pattern":"^a{1000}$"})", {'"' + std::string(1000, 'a') + '"'},
           {'"' + std::string(999, 'a') + '"'});
}

TEST(JsonSchema, PatternTogetherWithLengths) {
    expect(R"({"pattern":"^[a-z]+$","maxLength":3})", {R"("a")", R"("abc")"},
           {R"("")", R"("abcd")"});
    expect(R"({"pattern":"^x[0-9]*yz$","minLength":5,"maxLength":6})",
           {R"("x12yz")", R"("x123yz")"}, {R"("x1yz")", R"("x1234yz")"});
    expect(R"({"pattern":"^[a-z]{2}$","minLength":1,"maxLength":2})", {R"("ab")"}, {R"("a")"});
    EXPECT_THAT(refusal(R"({"pattern":"a","maxLength":3})"),
                HasSubstr("#/pattern: is not supported together with"));
    EXPECT_THAT(refusal(R"({"allOf":[{"pattern":"^a"},{"pattern":"b$"}]})"),
                HasSubstr("#/allOf/1/pattern: a second pattern"));
}

TEST(JsonSchema, PatternsThatAreNotSupportedAreNamed) {
    const auto message = [](const std::string& pattern) {
        return refusal_of(ordered_json{{"pattern", pattern}});
    };
    EXPECT_THAT(message("a(?=b)"),
                HasSubstr("#/pattern: pattern \"a(?=b)\": character 2: only groups"));
    EXPECT_THAT(message("(a)\\1"), HasSubstr("\\1 is not supported"));
    EXPECT_THAT(message("\\bx"), HasSubstr("\\b is not supported"));
    EXPECT_THAT(message("\\p{L}"), HasSubstr("\\p is not supported"));
    EXPECT_THAT(message("a^b"), HasSubstr("only at the ends"));
    EXPECT_THAT(message("(a$)b"), HasSubstr("only at the ends"));
    EXPECT_THAT(message("^*"), HasSubstr("repeats an anchor"));
    EXPECT_THAT(message("a{3,2}"), HasSubstr("at most less often"));
    EXPECT_THAT(message("a{2001}"), HasSubstr("more than 2000 repetitions"));
    EXPECT_THAT(message("(a{100}){100}"), HasSubstr("come to more than 2000"));
    EXPECT_THAT(message("a{x}"), HasSubstr("expected the bounds"));
    EXPECT_THAT(message("*"), HasSubstr("nothing to repeat"));
    EXPECT_THAT(message("a++"), HasSubstr("right after a repetition"));
    EXPECT_THAT(message("(a"), HasSubstr("( without its )"));
    EXPECT_THAT(message("a)"), HasSubstr(") without its ("));
    EXPECT_THAT(message("[a"), HasSubstr("[ without its ]"));
    EXPECT_THAT(message("[]"), HasSubstr("empty class"));
    EXPECT_THAT(message("[^\\d\\D]"), HasSubstr("holds no character"));
    EXPECT_THAT(message("[b-a]"), HasSubstr("end comes before its start"));
    EXPECT_THAT(message("\\uD800"), HasSubstr("is not a character"));
    EXPECT_THAT(message("\\"), HasSubstr("\\ at the end"));
    EXPECT_THAT(message(std::string(40, '(') + std::string(40, ')')), HasSubstr("open groups"));
    EXPECT_THAT(message(std::string(1001, 'a')), HasSubstr("1001 characters"));
    EXPECT_THAT(refusal(R"({"pattern":1})"), HasSubstr("#/pattern: expected a string"));
}

TEST(JsonSchema, Format) {
    expect(R"({"format":"date"})",
           {R"("2024-02-29")", R"("2000-02-29")", R"("1999-12-31")", R"("2023-04-30")"},
           {R"("2023-02-29")", R"("0000-02-29")", R"("0000-01-01")", R"("1900-02-29")",
            R"("2023-04-31")", R"("2023-13-01")", R"("2023-1-1")"});
    expect(R"({"format":"time"})", {R"("23:59:59Z")", R"("00:00:00.125+02:00")"},
           {R"("24:00:00Z")", R"("12:00:00")", R"("12:60:00Z")"});
    expect(R"({"format":"date-time"})", {R"("2024-02-29T12:30:00Z")"},
           {R"("2024-02-29 12:30:00Z")", R"("2024-02-29")"});
    expect(R"({"format":"duration"})", {R"("P3W")", R"("P1Y2M3D")", R"("PT5S")", R"("P1DT12H")"},
           {R"("P")", R"("PT")", R"("P1Y3D")", R"("1D")"});
    expect(R"({"format":"uuid"})", {R"("123e4567-e89b-12d3-a456-426614174000")"},
           {R"("123e4567e89b12d3a456426614174000")"});
    expect(R"({"format":"email"})", {R"("a.b+c@example.org")"},
           {R"("a@b")", R"("@example.org")", R"("a..b@example.org")"});
    expect(R"({"format":"hostname"})", {R"("localhost")", R"("a-1.example.org")"},
           {R"("-a")", R"("a..b")"});
    expect(R"({"format":"ipv4"})", {R"("0.0.0.0")", R"("255.1.20.199")"},
           {R"("256.1.1.1")", R"("01.1.1.1")", R"("1.1.1")"});
    expect(R"({"format":"ipv6"})",
           {R"("::")", R"("::1")", R"("1::")", R"("fe80::1:2")", R"("1:2:3:4:5:6:7:8")"},
           {R"("1:2")", R"("1::2::3")", R"("1:2:3:4:5:6:7:8:9")", R"(":1")"});
    expect(R"({"format":"uri"})", {R"("https://example.org/a/b?c=d#e")", R"("ftp://h:21")"},
           {R"("example.org")", R"("http://a b")", R"("http://")"});
    expect(R"({"type":"integer","format":"int32"})", {"-2147483648", "2147483647", "0"},
           {"2147483648", "-2147483649"});
    expect(R"({"type":"integer","format":"uint8","minimum":250})", {"250", "255"}, {"249", "256"});
    expect(R"({"type":"number","format":"double"})", {"1.5"}, {"\"x\""});
    EXPECT_THAT(refusal(R"({"properties":{"a":{"format":"regex"}}})"),
                AllOf(HasSubstr("#/properties/a/format: the format \"regex\" is not supported"),
                      HasSubstr("date-time")));
}

TEST(JsonSchema, IntegerBoundsAreExact) {
    expect(R"({"type":"integer","minimum":0})", {"0", "7", "9999999999999999"},
           {"-1", "-0", "10000000000000000"});
    expect(R"({"type":"integer","exclusiveMinimum":-1.5,"exclusiveMaximum":2})", {"-1", "0", "1"},
           {"-2", "2"});
    expect(R"({"type":"integer","minimum":0.5,"maximum":1.5})", {"1"}, {"0", "2"});
    expect(R"({"type":"integer","minimum":-1e3,"maximum":-999})", {"-1000", "-999"},
           {"-1001", "-998", "0"});
    expect(R"({"type":"integer","minimum":9223372036854775807,"maximum":18446744073709551615})",
           {"9223372036854775807", "18446744073709551615"},
           {"9223372036854775806", "18446744073709551616"});
    EXPECT_THAT(refusal(R"({"type":"integer","minimum":2,"maximum":1})"),
                HasSubstr("allows no value"));
    EXPECT_THAT(refusal(R"({"type":"integer","exclusiveMinimum":1,"exclusiveMaximum":2})"),
                HasSubstr("allows no value"));
    EXPECT_THAT(refusal(R"({"maximum":"1"})"), HasSubstr("#/maximum: is not a number"));
    EXPECT_THAT(refusal(R"({"minimum":0,"exclusiveMinimum":true})"),
                HasSubstr("#/exclusiveMinimum: is not a number"));
    EXPECT_THAT(refusal(R"({"maximum":1e60})"), HasSubstr("#/maximum: has more than 30 digits"));
    // Every pair of bounds in a range around places where digits carry.
    for (int low = -121; low <= 121; low += 7) {
        for (int high = low; high <= 121; high += 11) {
            const test::Gbnf gbnf(grammar_of(
                fmt::format(R"({{"type":"integer","minimum":{},"maximum":{}}})", low, high)));
            for (int value = -130; value <= 130; ++value) {
                EXPECT_EQ(gbnf.accepts(std::to_string(value)), low <= value && value <= high)
                    << low << ' ' << high << ' ' << value;
            }
        }
    }
}

TEST(JsonSchema, NumberBoundsAreExact) {
    expect(R"({"type":"number","minimum":0,"maximum":1})",
           {"0", "1", "0.5", "1.000", "0.0", "0.9999999999999999"},
           {"-0.1", "1.0001", "2", "-0", "1e0"});
    expect(R"({"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1})",
           {"0.5", "0.001", "0.999"}, {"0", "0.0", "1", "1.0", "0.00"});
    expect(R"({"type":"number","minimum":-0.25,"maximum":10.5})",
           {"-0.25", "-0.2", "-0.250", "10.5", "9.99", "10.49", "10.50"},
           {"-0.26", "-0.251", "10.51", "10.501", "11", "-1"});
    expect(R"({"type":"number","exclusiveMaximum":-1.5})", {"-1.51", "-2", "-1.5000001"},
           {"-1.5", "-1.50", "-1.4", "0", "1"});
    expect(R"({"type":"number","minimum":1e-7})", {"0.0000001", "1"}, {"0.00000009", "0"});
    EXPECT_THAT(refusal(R"({"type":"number","exclusiveMinimum":1,"maximum":1})"),
                HasSubstr("allows no value"));
    const auto decimal = [](int hundredths, int places) {
        return fmt::format("{:.{}f}", hundredths / 100.0, places);
    };
    for (int low = -150; low <= 150; low += 13) {
        for (int high = low + 1; high <= 230; high += 29) {
            for (const bool exclusive : {false, true}) {
                const test::Gbnf gbnf(
                    grammar_of(fmt::format(R"({{"type":"number","{0}inimum":{1},"{2}aximum":{3}}})",
                                           exclusive ? "exclusiveM" : "m", decimal(low, 2),
                                           exclusive ? "exclusiveM" : "m", decimal(high, 2))));
                for (int value = -160; value <= 240; value += 1) {
                    const bool inside =
                        exclusive ? low < value && value < high : low <= value && value <= high;
                    const std::string text = decimal(value, 2);
                    const bool minus_zero = text.front() == '-' && value == 0;
                    EXPECT_EQ(gbnf.accepts(text), inside && !minus_zero)
                        << low << ' ' << high << ' ' << text;
                    if (value % 10 == 0 && value != 0) {
                        EXPECT_EQ(gbnf.accepts(decimal(value, 1)), inside)
                            << low << ' ' << high << ' ' << value;
                    }
                }
            }
        }
    }
}

TEST(JsonSchema, PropertiesComeInOrderAndOptionalOnesInAllCombinations) {
    expect(
        R"({"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"},"c":{"type":"null"}},"required":["b"]})",
        {R"({"b":null})", R"({"a":null,"b":null})", R"({"b":null,"c":null})",
         R"({"a":null,"b":null,"c":null})"},
        {"{}", R"({"a":null})", R"({"c":null,"b":null})", R"({"b":null,"b":null})",
         R"({"b":null,"d":null})", R"({"a":null,"c":null})"});
    // All subsets of seven optional properties, and no other order.
    ordered_json schema = {{"type", "object"}};
    for (char c = 'a'; c <= 'g'; ++c) schema["properties"][std::string(1, c)] = {{"type", "null"}};
    const test::Gbnf gbnf(grammar_of(schema.dump()));
    for (int subset = 0; subset < 128; ++subset) {
        ordered_json value = ordered_json::object();
        for (int i = 0; i < 7; ++i) {
            if ((subset >> i & 1) != 0) value[std::string(1, static_cast<char>('a' + i))] = nullptr;
        }
        EXPECT_TRUE(gbnf.accepts(value.dump())) << value;
    }
    EXPECT_FALSE(gbnf.accepts(R"({"b":null,"a":null})"));
    EXPECT_FALSE(gbnf.accepts(R"({"a":null,})"));
    EXPECT_FALSE(gbnf.accepts(R"({,"a":null})"));
}

TEST(JsonSchema, ManyOptionalPropertiesDoNotGrowTheGrammarMuch) {
    const auto size = [](int n, bool required) {
        ordered_json schema = {{"type", "object"}};
        for (int i = 0; i < n; ++i)
            schema["properties"][fmt::format("p{}", i)] = {{"type", "integer"}};
        if (required) schema["required"] = {fmt::format("p{}", n / 2)};
        return grammar_of(schema.dump()).size();
    };
    for (const bool required : {false, true})
        EXPECT_LT(size(400, required), 6 * size(80, required));
}

TEST(JsonSchema, AdditionalProperties) {
    expect(R"({"type":"object","properties":{"a":{"type":"null"}},"additionalProperties":false})",
           {"{}", R"({"a":null})"}, {R"({"b":null})"});
    expect(R"({"type":"object","properties":{"a":{"type":"null"}}})", {"{}", R"({"a":null})"},
           {R"({"b":null})"});
    expect(R"({"type":"object","properties":{}})", {"{}", "{ }"}, {R"({"b":null})"});
    expect(R"({"type":"object"})", {"{}", R"({"b":[null]})"}, {"[]"});
    expect(R"({"type":"object","additionalProperties":{"type":"integer"}})",
           {"{}", R"({"x":1})", R"({"x":1,"y":2})"}, {R"({"x":"1"})"});
    expect(R"({"type":"object","additionalProperties":false})", {"{}"}, {R"({"x":1})"});
    expect(
        R"({"properties":{"name":{"type":"string"},"na\"me":{"type":"string"}},"additionalProperties":{"type":"integer"}})",
        {"{}", R"({"name":"x"})", R"({"name":"x","nam":1,"names":2,"":3,"é":4})", R"({"n":1})",
         R"({"xname":1})"},
        {R"({"name":1})", R"({"nam":"x"})", R"({"\u006eame":1})", R"({"nam":1,"name":"x"})",
         R"({"na\"me":1})"});
    expect(R"({"properties":{"a":{"type":"null"}},"required":["a"],"additionalProperties":true})",
           {R"({"a":null})", R"({"a":null,"b":1,"c":{}})"},
           {"{}", R"({"b":1})", R"({"b":1,"a":null})"});
    expect(R"({"required":["x","y"]})", {R"({"x":1,"y":[]})"}, {R"({"x":1})", R"({"y":1,"x":1})"});
    expect(R"({"properties":{"a":true,"b":false}})", {"{}", R"({"a":1})"}, {R"({"b":1})"});
    EXPECT_THAT(refusal(R"({"properties":{"b":false},"required":["b"]})"),
                HasSubstr("#: the required property \"b\" allows no value"));
    EXPECT_THAT(refusal(R"({"required":"b"})"),
                HasSubstr("#/required: expected an array of strings"));
    EXPECT_THAT(refusal(R"({"properties":["b"]})"), HasSubstr("#/properties: expected an object"));
}

TEST(JsonSchema, PatternPropertiesAndPropertyNames) {
    expect(
        R"({"type":"object","patternProperties":{"^x-":{"type":"integer"}},"properties":{"a":{"type":"null"}},"additionalProperties":false})",
        {"{}", R"({"x-1":1,"x-2":2})", R"({"a":null,"x-":1})"}, {R"({"y":1})", R"({"x-1":"s"})"});
    expect(
        R"({"type":"object","propertyNames":{"enum":["a","b"]},"additionalProperties":{"type":"integer"}})",
        {"{}", R"({"a":1,"b":2})"}, {R"({"c":1})"});
    expect(R"({"propertyNames":{"pattern":"^[a-z]{1,3}$"}})", {R"({"abc":[]})"},
           {R"({"abcd":1})", R"({"":1})"});
    expect(
        R"({"properties":{"ab":{"type":"null"},"abc":{"type":"null"}},"propertyNames":{"maxLength":2}})",
        {"{}", R"({"ab":null})"}, {R"({"abc":null})"});
    EXPECT_THAT(refusal(R"({"patternProperties":{"^a":{},"^b":{}}})"),
                HasSubstr("more than one pattern"));
    EXPECT_THAT(refusal(R"({"patternProperties":{"a":{}},"properties":{"cab":{}}})"),
                HasSubstr("matches a listed property, here \"cab\""));
    EXPECT_THAT(refusal(R"({"patternProperties":{"a":{}},"additionalProperties":{"type":"null"}})"),
                HasSubstr("#/patternProperties: is not supported beside"));
}

TEST(JsonSchema, CountsOfProperties) {
    expect(
        R"({"type":"object","additionalProperties":{"type":"null"},"minProperties":1,"maxProperties":2})",
        {R"({"a":null})", R"({"a":null,"b":null})"}, {"{}", R"({"a":null,"b":null,"c":null})"});
    expect(R"({"properties":{"a":{"type":"null"},"b":{"type":"null"}},"minProperties":1})",
           {R"({"a":null})", R"({"b":null})"}, {"{}"});
    expect(
        R"({"properties":{"a":{"type":"null"}},"required":["a"],"minProperties":1,"maxProperties":1})",
        {R"({"a":null})"}, {"{}"});
    expect(R"({"type":"object","maxProperties":0})", {"{}"}, {R"({"a":null})"});
    EXPECT_THAT(refusal(R"({"type":"object","minProperties":2})"),
                HasSubstr("minProperties is not supported"));
    EXPECT_THAT(refusal(R"({"properties":{"a":{},"b":{}},"maxProperties":1})"),
                HasSubstr("maxProperties is not supported"));
}

TEST(JsonSchema, Arrays) {
    expect(R"({"type":"array","items":{"type":"integer"}})",
           {"[]", "[1]", "[1,2, 3]", "[\n  1,\n  2\n]"}, {"[1,]", "[\"1\"]", "[,1]", "1"});
    expect(R"({"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":3})",
           {"[1,2]", "[1,2,3]"}, {"[]", "[1]", "[1,2,3,4]"});
    expect(R"({"type":"array","items":{"type":"integer"},"maxItems":1})", {"[]", "[1]"}, {"[1,2]"});
    expect(R"({"type":"array","maxItems":0})", {"[]"}, {"[1]"});
    expect(R"({"type":"array"})", {"[]", R"([1,"a",{}])"}, {"{}"});
    expect(R"({"type":"array","items":false})", {"[]"}, {"[1]"});
    std::string many = "[0";
    for (int i = 0; i < 299; ++i) many += ",0";
    expect(R"({"type":"array","items":{"const":0},"minItems":300,"maxItems":301})",
           {many + "]", many + ",0]"}, {"[0]", many + ",0,0]"});
    EXPECT_THAT(refusal(R"({"type":"array","items":false,"minItems":1})"),
                HasSubstr("no array can have its number of items"));
    EXPECT_THAT(refusal(R"({"type":"array","minItems":3,"maxItems":2})"),
                HasSubstr("no array can have"));
}

TEST(JsonSchema, Tuples) {
    const std::string two = R"([{"type":"integer"},{"type":"string"}])";
    expect(R"({"type":"array","prefixItems":)" + two + "}", {R"([1,"a"])"},
           {"[]", "[1]", R"([1,"a",2])", R"(["a",1])"});
    expect(R"({"type":"array","prefixItems":)" + two + R"(,"minItems":0})",
           {"[]", "[1]", R"([1,"a"])"}, {R"(["a"])", R"([1,"a",2])"});
    expect(R"({"type":"array","prefixItems":)" + two + R"(,"minItems":1,"maxItems":1})", {"[1]"},
           {"[]", R"([1,"a"])"});
    expect(R"({"type":"array","prefixItems":)" + two +
               R"(,"items":{"type":"null"},"minItems":1,"maxItems":4})",
           {"[1]", R"([1,"a"])", R"([1,"a",null])", R"([1,"a",null,null])"},
           {"[]", "[1,null]", R"([1,"a",null,null,null])"});
    expect(R"({"type":"array","prefixItems":)" + two + R"(,"items":{"type":"null"},"minItems":3})",
           {R"([1,"a",null])"}, {R"([1,"a"])"});
    expect(R"({"type":"array","items":)" + two + R"(,"additionalItems":{"type":"null"}})",
           {R"([1,"a"])", R"([1,"a",null])"}, {"[1]"});
    expect(R"({"type":"array","items":)" + two + R"(,"additionalItems":false})", {R"([1,"a"])"},
           {R"([1,"a",null])"});
}

TEST(JsonSchema, AnyOf) {
    expect(R"({"anyOf":[{"type":"integer"},{"type":"string","maxLength":1},{"type":"null"}]})",
           {"1", R"("a")", "null"}, {R"("ab")", "1.5"});
    expect(
        R"({"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"}},"anyOf":[{"required":["a"]},{"required":["b"]}]})",
        {R"({"a":null})", R"({"b":null})", R"({"a":null,"b":null})"}, {"{}"});
    expect(R"({"anyOf":[{"type":"integer"},{"type":"string"}],"type":["string","null"]})",
           {R"("a")"}, {"1", "null"});
    expect(R"({"anyOf":[false,{"const":1}]})", {"1"}, {"2"});
    EXPECT_THAT(refusal(R"({"anyOf":[]})"), HasSubstr("#/anyOf: expected a non-empty array"));
    EXPECT_THAT(refusal(R"({"anyOf":[false]})"), HasSubstr("allows no value"));
}

TEST(JsonSchema, OneOfNeedsAlternativesThatExcludeEachOther) {
    expect(R"({"oneOf":[{"type":"integer"},{"type":"string"}]})", {"1", R"("a")"}, {"null"});
    expect(R"({"oneOf":[{"type":"integer","maximum":3},{"type":"number","exclusiveMinimum":3}]})",
           {"3", "3.5"}, {"2.5"});
    expect(R"({"oneOf":[{"const":1},{"enum":[2,"x"]}]})", {"1", "2", R"("x")"}, {"3"});
    const std::string cat =
        R"({"type":"object","properties":{"kind":{"const":"cat"},"lives":{"type":"integer"}})";
    const std::string dog =
        R"({"type":"object","properties":{"kind":{"const":"dog"},"name":{"type":"string"}})";
    const std::string kind = R"(,"required":["kind"]})";
    const Texts pets = {R"({"kind":"cat","lives":9})", R"({"kind":"dog","name":"a"})"};
    const Texts no_pets = {R"({"kind":"cow"})", R"({"kind":"cat","name":"a"})", R"({"lives":9})"};
    expect(R"({"oneOf":[)" + cat + kind + "," + dog + kind + "]}", pets, no_pets);
    // As Pydantic writes it: the tag has a default, so only the discriminator makes it required.
    expect(R"({"oneOf":[)" + cat + "}," + dog + R"(}],"discriminator":{"propertyName":"kind"}})",
           pets, no_pets);
    EXPECT_THAT(refusal(R"({"oneOf":[)" + cat + "}," + dog + "}]}"),
                HasSubstr("#/oneOf: alternatives 0 and 1 may both hold; write anyOf"));
    EXPECT_THAT(refusal(R"({"oneOf":[{"type":"integer"},{"type":"number"}]})"),
                HasSubstr("may both hold"));
    // Each writes a property that the other never has and always needs.
    expect(
        R"({"oneOf":[{"properties":{"a":{}},"required":["a"]},{"properties":{"b":{}},"required":["b"]}]})",
        {R"({"a":1})", R"({"b":1})"}, {"{}", R"({"a":1,"b":1})"});
}

TEST(JsonSchema, AllOfJoins) {
    expect(
        R"({"allOf":[{"properties":{"a":{"type":"integer"}},"required":["a"]},{"properties":{"b":{"type":"null"},"a":{"minimum":3}},"required":["b"]}]})",
        {R"({"a":3,"b":null})"}, {R"({"a":2,"b":null})", R"({"a":3})"});
    expect(
        R"({"allOf":[{"type":["string","integer"]},{"type":["integer","null"]}],"minimum":1,"maximum":9})",
        {"1", "9"}, {"0", "null", R"("a")"});
    expect(
        R"({"allOf":[{"properties":{"a":{}},"additionalProperties":false},{"properties":{"b":{}}}]})",
        {"{}", R"({"a":1})"}, {R"({"b":1})"});
    expect(R"({"allOf":[{"items":{"minimum":2}},{"items":{"type":"integer"},"maxItems":1}]})",
           {"[]", "[2]"}, {"[1]", "[2.5]", "[2,2]"});
    expect(R"({"allOf":[{"anyOf":[{"const":1},{"const":2}]},{"anyOf":[{"const":2},{"const":3}]}]})",
           {"2"}, {"1", "3"});
    EXPECT_THAT(refusal(R"({"allOf":[{"type":"string"},{"type":"null"}]})"),
                HasSubstr("allows no value"));
}

TEST(JsonSchema, References) {
    expect(
        R"({"$defs":{"n":{"type":"integer"}},"properties":{"a":{"$ref":"#/$defs/n","description":"x"},"b":{"$ref":"#/$defs/n","minimum":5}}})",
        {R"({"a":1,"b":5})"}, {R"({"b":4})", R"({"a":"1"})"});
    expect(R"({"definitions":{"a/b~c%":{"const":1}},"$ref":"#/definitions/a~1b~0c%25"})", {"1"},
           {"2"});
    expect(R"({"anyOf":[{"const":1},{"properties":{"x":{"$ref":"#/anyOf/0"}}}]})",
           {"1", R"({"x":1})"}, {R"({"x":2})"});
    expect(
        R"({"type":"object","properties":{"v":{"type":"integer"},"next":{"$ref":"#"}},"required":["v"]})",
        {R"({"v":1})", R"({"v":1,"next":{"v":2,"next":{"v":3}}})"},
        {R"({"next":{"v":1}})", R"({"v":1,"next":{}})"});
    expect(
        R"({"$defs":{"tree":{"anyOf":[{"type":"null"},{"type":"array","items":{"$ref":"#/$defs/tree"}}]}},"$ref":"#/$defs/tree"})",
        {"null", "[]", "[null,[[null]]]"}, {"[1]"});
    EXPECT_THAT(refusal(R"({"$ref":"#/$defs/x"})"),
                HasSubstr("#/$ref: \"#/$defs/x\" leads nowhere"));
    EXPECT_THAT(refusal(R"({"$ref":"other.json"})"), HasSubstr("leads out of this schema"));
    EXPECT_THAT(refusal(R"({"$ref":"#name"})"), HasSubstr("names an anchor"));
    EXPECT_THAT(refusal(R"({"$ref":1})"), HasSubstr("#/$ref: expected a string"));
}

TEST(JsonSchema, ReferencesThatNeverEndAreRefused) {
    EXPECT_THAT(refusal(R"({"$ref":"#"})"), HasSubstr("#: refers to itself without an end"));
    EXPECT_THAT(
        refusal(
            R"({"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"allOf":[{"$ref":"#/$defs/a"}]}},"$ref":"#/$defs/a"})"),
        HasSubstr("refers to itself"));
    EXPECT_THAT(refusal(R"({"anyOf":[{"type":"null"},{"$ref":"#"}]})"),
                HasSubstr("refers to itself"));
    EXPECT_THAT(refusal(R"({"properties":{"a":{"$ref":"#"}},"required":["a"]})"),
                HasSubstr("must hold another one without an end"));
    EXPECT_THAT(refusal(R"({"type":"array","items":{"$ref":"#"},"minItems":1})"),
                HasSubstr("must hold another one without an end"));
    expect(R"({"properties":{"a":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"required":["a"]})",
           {R"({"a":{"a":null}})"}, {"{}"});
}

TEST(JsonSchema, EveryOtherKeywordIsRefusedByNameAndPlace) {
    const std::vector<std::pair<std::string, std::string>> keywords = {
        {"not", "{}"},
        {"if", "{}"},
        {"then", "{}"},
        {"else", "{}"},
        {"contains", "{}"},
        {"minContains", "1"},
        {"maxContains", "1"},
        {"uniqueItems", "true"},
        {"multipleOf", "0.5"},
        {"dependentRequired", "{}"},
        {"dependentSchemas", "{}"},
        {"dependencies", "{}"},
        {"unevaluatedProperties", "false"},
        {"unevaluatedItems", "false"},
        {"$dynamicRef", "\"#a\""},
        {"$recursiveRef", "\"#\""},
        {"$id", "\"x\""},
        {"requried", "[]"},
        {"divisibleBy", "2"}};
    for (const auto& [keyword, value] : keywords) {
        const std::string schema =
            fmt::format(R"({{"properties":{{"a/b":{{"{}":{}}}}}}})", keyword, value);
        EXPECT_THAT(
            refusal(schema),
            HasSubstr(fmt::format(
                "schema, #/properties/a~1b/{0}: the keyword \"{0}\" is not supported", keyword)));
    }
}

TEST(JsonSchema, AnnotationsSayNothingAboutValues) {
    expect(
        R"({"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"https://example.org/x","title":"T","description":"d",
               "$comment":"c","default":1,"examples":[1],"deprecated":true,"readOnly":true,"writeOnly":false,"x-order":1,
               "contentMediaType":"text/plain","type":"integer","uniqueItems":false,"multipleOf":1})",
        {"1"}, {"null"});
}

TEST(JsonSchema, HostileSchemasAreRefusedQuickly) {
    ordered_json deep = {{"type", "null"}};
    for (int i = 0; i < 50'000; ++i) {
        ordered_json outer = {{"type", "array"}};
        outer["items"] = std::move(deep);
        deep = std::move(outer);
    }
    EXPECT_THAT(refusal_of(deep), HasSubstr("nested too deeply"));
    EXPECT_THAT(refusal_of(ordered_json{{"description", std::string(300'000, 'x')}}),
                HasSubstr("at most 262144"));
    EXPECT_THAT(refusal_of(ordered_json{{"const", "\xFF"}}), HasSubstr("not valid UTF-8"));
    EXPECT_THAT(refusal_of(ordered_json{{"\xFF", "x"}}), HasSubstr("not valid UTF-8"));
    ordered_json nest = {{"enum", {1, 2}}};
    for (int i = 0; i < 30; ++i) {
        ordered_json both = ordered_json::array(
            {nest["enum"].is_null() ? ordered_json{{"$ref", "#/$defs/" + std::to_string(i - 1)}}
                                    : nest});
        both.push_back({{"$ref", "#/$defs/" + std::to_string(i)}});
        nest = {{"anyOf", both}};
    }
    refusal_of(nest);
    // Each doubles what the one before unfolds to.
    ordered_json doubling = {{"$ref", "#/$defs/40"}};
    doubling["$defs"]["0"] = {{"type", "null"}};
    for (int i = 1; i <= 40; ++i) {
        const ordered_json ref = {{"$ref", "#/$defs/" + std::to_string(i - 1)}};
        const ordered_json other = {{"allOf", {ref}}, {"minimum", i}};
        doubling["$defs"][std::to_string(i)] = {{"anyOf", {ref, other}}};
    }
    EXPECT_THAT(refusal_of(doubling), HasSubstr("unfold to more than"));
    ordered_json product = ordered_json::object();
    for (int i = 0; i < 30; ++i)
        product["allOf"].push_back({{"anyOf", {{{"minLength", i}}, {{"maxLength", 100 + i}}}}});
    EXPECT_THAT(refusal_of(product), HasSubstr("unfold to more than"));
    ordered_json chain = {{"$ref", "#/$defs/999"}};
    chain["$defs"]["0"] = {{"type", "null"}};
    for (int i = 1; i < 1000; ++i)
        chain["$defs"][std::to_string(i)] = {{"$ref", "#/$defs/" + std::to_string(i - 1)}};
    EXPECT_THAT(refusal_of(chain), HasSubstr("references lead to each other"));
    ordered_json huge_enum = ordered_json::object();
    for (int i = 0; i < 9'000; ++i)
        huge_enum["enum"].push_back(fmt::format("{0}{1}{0}", i, i * 7919));
    EXPECT_NO_THROW(grammar_of(huge_enum.dump()));
    ordered_json wide = {{"type", "object"}};
    for (int i = 0; i < 9'000; ++i) wide["properties"]["p" + std::to_string(i)] = true;
    EXPECT_THAT(refusal_of(wide), HasSubstr("more than 5000 properties"));
    ordered_json optional = {{"type", "object"}};
    for (int i = 0; i < 401; ++i) optional["properties"]["p" + std::to_string(i)] = true;
    EXPECT_THAT(refusal_of(optional), HasSubstr("more than 400 optional properties"));
    ordered_json many = {{"type", "object"}};
    for (int i = 0; i < 4'900; ++i) {
        many["required"].push_back("p" + std::to_string(i));
        many["properties"]["p" + std::to_string(i)] = {{"minLength", i % 100},
                                                       {"maxLength", 9 * i}};
    }
    EXPECT_THAT(refusal_of(many), HasSubstr("too large"));
    ordered_json twice = ordered_json::object();
    for (int i = 0; i < 2; ++i) {
        ordered_json part = ordered_json::object();
        for (int k = 0; k < 4'000; ++k) part["enum"].push_back(k + i);
        twice["allOf"].push_back(part);
    }
    EXPECT_NO_THROW(grammar_of(twice.dump()));
    ordered_json one_of = ordered_json::object();
    for (int i = 0; i < 2; ++i) {
        one_of["oneOf"].push_back({{"enum", ordered_json::array()}});
        for (int k = 0; k < 4'000; ++k) one_of["oneOf"][i]["enum"].push_back(2 * k + i);
    }
    EXPECT_THAT(refusal_of(one_of), HasSubstr("unfold to more than"));
}

TEST(JsonSchema, ASamplerFollowsItsGrammarsTokenByToken) {
    SamplingParams params;
    params.constraint.text = grammar_of(
        R"({"properties":{"id":{"type":"integer","minimum":5,"maximum":120},"tags":{"type":"array","items":{"pattern":"^[a-z]{1,3}$"},"maxItems":2},
            "note":{"type":"string","maxLength":100}},"required":["id"]})");
    const auto follows = [&](const std::string& text) {
        Sampler sampler(params, tokenizer());
        for (const int32_t token : tokenizer().tokenize(text, false, false)) {
            if (!sampler.fits_grammar(token)) return false;
            sampler.accept(token);
        }
        return sampler.fits_grammar(tokenizer().eos());
    };
    for (const char* text : {R"({"id":5})", "{\n  \"id\": 120, \"tags\": [\"abc\", \"x\"]\n}",
                             R"({"id":99,"note":"é漢\n\u00e9"})"}) {
        EXPECT_TRUE(follows(text)) << text;
    }
    for (const char* text : {R"({"id":4})", R"({"id":121})", R"({"id":5,"tags":["abcd"]})",
                             R"({"id":5)", R"({"tags":[],"id":5})"}) {
        EXPECT_FALSE(follows(text)) << text;
    }
}

TEST(JsonSchema, RulesOfSeveralSchemasLiveInOneGrammar) {
    GrammarText grammar;
    const std::string a = add_json_schema(
        grammar,
        ordered_json::parse(R"({"properties":{"root":{"type":"integer"},"json-value":{}}})"));
    const std::string b = add_json_schema(
        grammar, ordered_json::parse(R"({"properties":{"root":{"type":"string"}}})"));
    grammar.add("root", a + " \" \" " + b + " " + add_json_object(grammar));
    check_grammar(grammar.text(), "root", tokenizer());
    const test::Gbnf gbnf(grammar.text());
    EXPECT_TRUE(gbnf.accepts(R"({"root":1,"json-value":[{}]} {"root":"x"}{"q":1})"));
    EXPECT_FALSE(gbnf.accepts(R"({"root":"x"} {"root":"x"}{})"));
}

}  // namespace
}  // namespace pleat
