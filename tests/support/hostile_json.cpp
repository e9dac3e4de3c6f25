#include "support/hostile_json.h"

#include <nlohmann/json.hpp>
#include <vector>

namespace pleat::test {
namespace {

using nlohmann::json;

std::string repeated(const std::string& text, size_t n) {
    std::string result;
    for (size_t i = 0; i < n; ++i) result += text;
    return result;
}

std::string nested(const std::string& open, const std::string& inside, const std::string& close,
                   size_t n) {
    return repeated(open, n) + inside + repeated(close, n);
}

const std::string& one_of(std::mt19937& random, const std::vector<std::string>& list) {
    return list[below(random, list.size())];
}

std::string json_text(const std::string& text) {
    return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string random_bytes(std::mt19937& random, size_t n) {
    std::string result;
    for (size_t i = 0; i < n; ++i) result += static_cast<char>(below(random, 256));
    return result;
}

}  // namespace

size_t below(std::mt19937& random, size_t n) {
    return std::uniform_int_distribution<size_t>(0, n - 1)(random);
}

bool chance(std::mt19937& random, double p) { return std::bernoulli_distribution(p)(random); }

void damage(std::mt19937& random, std::string& text) {
    for (size_t n = 1 + below(random, 4); n > 0 && !text.empty(); --n) {
        const size_t at = below(random, text.size());
        switch (below(random, 5)) {
            case 0:
                text[at] = static_cast<char>(below(random, 256));
                break;
            case 1:
                text.resize(at);
                break;
            case 2:
                text.insert(at, text.substr(at, 1 + below(random, 20)));
                break;
            case 3:
                text.insert(at, one_of(random, {"\"", "{", "]", ",", "\\", "\xFF", "\xED\xA0\x80",
                                                "1e999"}));
                break;
            default:
                text.erase(at, 1 + below(random, 8));
                break;
        }
    }
}

std::string hostile_value(std::mt19937& random) {
    static const std::vector<std::string> values = {"null",
                                                    "true",
                                                    "false",
                                                    "0",
                                                    "-0",
                                                    "1",
                                                    "-1",
                                                    "2",
                                                    "0.5",
                                                    "-1.5",
                                                    "1e308",
                                                    "-1e308",
                                                    "1e999",
                                                    "1e-999",
                                                    "2147483647",
                                                    "2147483648",
                                                    "-2147483649",
                                                    "4294967296",
                                                    "9223372036854775807",
                                                    "9223372036854775808",
                                                    "-9223372036854775809",
                                                    "18446744073709551615",
                                                    "18446744073709551616",
                                                    "123456789012345678901234567890",
                                                    "01",
                                                    "+1",
                                                    ".5",
                                                    "NaN",
                                                    "Infinity",
                                                    "0x10",
                                                    "\"\"",
                                                    "\"x\"",
                                                    "\"1\"",
                                                    "\"-1\"",
                                                    "\"\\u0000\"",
                                                    "\"a\\u0000b\"",
                                                    "\"\\ud800\"",
                                                    "\"\\udc00\\ud800\"",
                                                    "\"\\ud83d\\ude00\"",
                                                    "\"\xFF\"",
                                                    "\"\xC0\xAF\"",
                                                    "\"\xED\xA0\x80\"",
                                                    "\"\xF4\x90\x80\x80\"",
                                                    "\"unterminated",
                                                    "'x'",
                                                    "[]",
                                                    "{}",
                                                    "[null]",
                                                    "[[]]",
                                                    "[{}]",
                                                    "{\"\":null}",
                                                    "{\"a\":{\"b\":[1,2,{\"c\":null}]}}",
                                                    "[1,\"a\",null,true,{}]",
                                                    "[-1]",
                                                    "[0,0,0]",
                                                    "[999999999]",
                                                    "[1.5]",
                                                    "[\"\"]",
                                                    "{\"type\":\"text\"}",
                                                    "{\"0\":1}",
                                                    "{\"type\":null}",
                                                    "{\"type\":\"json_object\"}",
                                                    "[[1,2],[3,\"x\"]]",
                                                    "{\"a\":1,\"a\":2}",
                                                    "/**/1",
                                                    "1//x",
                                                    ""};
    switch (below(random, 20)) {
        case 0:
            return json_text(std::string(1 + below(random, 20'000), 'x'));
        case 1:
            return nested("[", "", "]", 1 + below(random, 200));
        case 2:
            return nested("{\"a\":", "1", "}", 1 + below(random, 200));
        case 3:
            return chance(random, 0.1) ? nested("[", "", "]", 100'000) : nested("[", "", "", 5000);
        case 4:
            return json_text(random_bytes(random, below(random, 60)));
        case 5:
            return '"' + random_bytes(random, below(random, 60)) + '"';
        case 6:
            return '[' + repeated("0,", below(random, 3000)) + "0]";
        default:
            return one_of(random, values);
    }
}

std::string hostile_grammar(std::mt19937& random) {
    static const std::vector<std::string> grammars = {
        "root ::= root",
        "root ::= root \"a\" | \"b\"",
        "root ::= \"\"",
        "root ::= ",
        "root",
        "::=",
        "",
        " ",
        "#",
        "\n\n",
        "root ::= a\na ::= b\nb ::= a",
        "root ::= a \"x\"\na ::= \"\" | root",
        "root ::= (\"\"*)*",
        "root ::= (\"a\"?)*",
        "root ::= ((\"a\"?){0,40}){0,40}",
        "root ::= [a-z]{0,5000}",
        "root ::= \"a\"{2000,1000}",
        "root ::= (\"ab\"{0,1000}){0,1000}",
        "root ::= \"a\"{99999999999999999999}",
        "root ::= [",
        "root ::= \"",
        "root ::= \"\\",
        "root ::= \"\\x\"",
        "root ::= \"\\u12\"",
        "root ::= [\\x00-\\x1F]",
        "root ::= \"\\x00\"",
        "root ::= [z-a]",
        "root ::= []",
        "root ::= [^]",
        "root ::= .",
        "root ::= .*",
        "root ::= \"\xFF\"",
        "root ::= \"\\U0010FFFF\"",
        "root ::= \"\\UFFFFFFFF\"",
        "root ::= <[999999]>",
        "root ::= <nothing>",
        "root ::= !<[1]>",
        "root ::= <|end|>",
        "root ::= x",
        "start ::= \"a\"",
        "root ::= \"a\" |",
        "root ::= | | |",
        "root ::= )",
        "root ::= (",
        "root ::= \"a\"*+?",
        "root ::= *",
        "root ::= {3}",
        "root ::= \"a\"{",
        "root ::= \"a\"{1",
        "root ::= \"a\"{,}",
        "root ::= \"a\"{1,2,3}",
        "root ::= [a-z]+ root2\nroot2 ::= root2 | \"x\"",
        "root ::= ([a-z] [a-z]?)* [0-9]",
        "root ::= (([ab]* [ab]*)* [ab]*)* \"c\"",
        "root ::= \"yes\" | \"no\"",
        "root ::= [0-9]+",
        "root ::= \"{\" root? \"}\"",
        "root ::= \"\xE6\xBC\xA2\"+"};
    std::string grammar = one_of(random, grammars);
    switch (below(random, 12)) {
        case 0:
            grammar = "root ::= " + nested("(", "\"a\"", ")", 1 + below(random, 1000));
            break;
        case 1:
            grammar = chance(random, 0.2) ? "root ::= " + nested("(", "\"a\"", ")", 100'000)
                                          : "root ::= " + std::string(5000, '(');
            break;
        case 2: {
            grammar = "root ::= r0\n";
            const size_t n = below(random, 2000);
            for (size_t i = 0; i < n; ++i)
                grammar += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + " r" +
                           std::to_string(i + 1) + "\n";
            grammar += "r" + std::to_string(n) + " ::= \"x\"\n";
            break;
        }
        case 3:
            grammar = "root ::= " + repeated("\"a\" | ", below(random, 4000)) + "\"b\"";
            break;
        case 4:
            damage(random, grammar);
            break;
        default:
            break;
    }
    return json_text(grammar);
}

std::string hostile_schema(std::mt19937& random) {
    static const std::vector<std::string> schemas = {
        R"({"$ref":"#"})",
        R"({"anyOf":[{"$ref":"#"}]})",
        R"({"allOf":[{"$ref":"#/allOf/0"}]})",
        R"({"properties":{"a":{"$ref":"#"}},"required":["a"]})",
        R"({"$ref":"http://127.0.0.1:1/x"})",
        R"({"$ref":"file:///etc/passwd"})",
        R"({"$ref":"#/../../x"})",
        R"({"$ref":"#/%"})",
        R"({"$ref":7})",
        R"({"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]})",
        R"({"enum":["x","y"]})",
        R"({"type":"boolean"})",
        R"({"type":"string","pattern":"^(a+)+$"})",
        R"-({"type":"string","pattern":"((((((((((a*)*)*)*)*)*)*)*)*)*)*"})-",
        R"({"pattern":"[\\s\\S]{2000}"})",
        R"({"pattern":"(a{40}){60}"})",
        R"-({"pattern":"(?<=x)"})-",
        R"({"pattern":"[z-a]"})",
        R"({"pattern":"\\"})",
        R"({"pattern":"\ud800"})",
        R"({"type":"string","maxLength":1e308})",
        R"({"type":"string","minLength":65536})",
        R"({"minItems":-1})",
        R"({"minimum":1e308,"maximum":-1e308})",
        R"({"type":"integer","minimum":-99999999999999999999999999999})",
        R"({"multipleOf":0})",
        R"({"uniqueItems":true})",
        R"({"not":{}})",
        R"({"if":{}})",
        R"({"required":["a","a","a"]})",
        R"({"required":[1]})",
        R"({"properties":[]})",
        R"({"items":[[],[]]})",
        R"({"items":[]})",
        R"({"prefixItems":7})",
        R"({"enum":[]})",
        R"({"enum":{}})",
        R"({"const":"\u0000"})",
        R"({"type":["string","nope"]})",
        R"({"type":[]})",
        R"({"type":{}})",
        R"({"oneOf":[{},{}]})",
        R"({"oneOf":[]})",
        R"({"format":"x"})",
        R"({"additionalProperties":7})",
        R"({"patternProperties":{"(":{}}})",
        "true",
        "false",
        "7",
        "null",
        "[]",
        R"("x")"};
    std::string schema = one_of(random, schemas);
    switch (below(random, 10)) {
        case 0:
            schema = nested(R"({"items":)", schema, "}", 1 + below(random, 300));
            break;
        case 1:
            schema = nested(R"({"anyOf":[true,)", schema, "]}", 1 + below(random, 60));
            break;
        case 2:
            schema = nested(R"({"allOf":[{"anyOf":[{"minLength":1},{"maxLength":3}]},)", schema,
                            "]}", 1 + below(random, 40));
            break;
        case 3:
            schema = R"({"enum":[)" + repeated("\"abc\",", below(random, 3000)) + "1]}";
            break;
        case 4:
            schema = nested(R"({"properties":{"a":)", schema, "}}", 5000);
            break;
        case 5:
            damage(random, schema);
            break;
        case 6:
            schema = R"({"type":"object","properties":{"k":)" + hostile_value(random) + "}}";
            break;
        default:
            break;
    }
    return schema;
}

std::string hostile_messages(std::mt19937& random) {
    static const std::vector<std::string> messages = {
        "[]",
        "{}",
        "null",
        "\"hi\"",
        "[null]",
        "[[]]",
        "[{}]",
        R"([{"role":"user"}])",
        R"([{"content":"x"}])",
        R"([{"role":7,"content":"x"}])",
        R"([{"role":"nobody","content":"x"}])",
        R"([{"role":"user","content":null}])",
        R"([{"role":"user","content":7}])",
        R"([{"role":"user","content":{}}])",
        R"([{"role":"user","content":[]}])",
        R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"file:///etc/passwd"}}]}])",
        R"([{"role":"user","content":[{"type":"text"}]}])",
        R"([{"role":"user","content":[{"type":"text","text":7}]}])",
        R"([{"role":"user","content":[null]}])",
        R"([{"role":"assistant","tool_calls":7}])",
        R"([{"role":"assistant","tool_calls":[{}]}])",
        R"([{"role":"assistant","content":null,"tool_calls":[{"type":"function","function":{"name":"f","arguments":"{"}}]}])",
        R"([{"role":"tool","content":"x"}])",
        R"([{"role":"tool","tool_call_id":7,"content":"x"}])",
        R"([{"role":"user","content":"<|im_end|><|end|>{{ 7 }}{% for x in y %}"}])",
        R"([{"role":"user","content":"\u0000\ud83d\ude00"}])",
        R"([{"role":"system","content":"a"},{"role":"system","content":"b"}])",
        R"([{"role":"user","content":"hi"}])",
        R"([{"role":"user","content":"hi","reasoning_content":[]}])",
        R"([{"role":"assistant","content":"a"}])"};
    switch (below(random, 8)) {
        case 0:
            return '[' + repeated(R"({"role":"user","content":"x"},)", below(random, 500)) +
                   R"({"role":"user","content":"y"}])";
        case 1:
            return R"([{"role":"user","content":)" + hostile_value(random) + "}]";
        case 2:
            return R"([{"role":)" + hostile_value(random) + R"(,"content":"x"}])";
        case 3:
            return R"([{"role":"user","content":"x","extra":)" +
                   nested("[", "", "]", below(random, 200)) + "}]";
        default:
            return one_of(random, messages);
    }
}

std::string hostile_template_arguments(std::mt19937& random) {
    static const std::vector<std::string> names = {"enable_thinking",
                                                   "messages",
                                                   "tools",
                                                   "bos_token",
                                                   "eos_token",
                                                   "add_generation_prompt",
                                                   "loop",
                                                   "range",
                                                   "namespace",
                                                   "raise_exception",
                                                   "__class__",
                                                   "self",
                                                   "strftime_now",
                                                   "",
                                                   "a b",
                                                   "{{",
                                                   "\\u0000"};
    std::string result = "{";
    for (size_t n = below(random, 4); n > 0; --n)
        result += (result.size() > 1 ? ",\"" : "\"") + one_of(random, names) +
                  "\":" + hostile_value(random);
    return chance(random, 0.8) ? result + "}" : hostile_value(random);
}

std::string hostile_tools(std::mt19937& random) {
    static const std::vector<std::string> tools = {
        "[]",
        "{}",
        "7",
        "[null]",
        "[{}]",
        R"([{"type":"function"}])",
        R"([{"type":"function","function":{}}])",
        R"([{"type":"code_interpreter"}])",
        R"([{"type":"function","function":{"name":7}}])",
        R"([{"type":"function","function":{"name":""}}])",
        R"([{"type":"function","function":{"name":"f","parameters":7}}])",
        R"([{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"f"}}])"};
    switch (below(random, 4)) {
        case 0:
            return R"([{"type":"function","function":{"name":"f","parameters":)" +
                   hostile_schema(random) + "}}]";
        case 1:
            return R"([{"type":"function","function":{"name":)" + hostile_value(random) +
                   R"(,"parameters":{"type":"object","properties":{}}}}])";
        case 2:
            return '[' +
                   repeated(R"({"type":"function","function":{"name":"f"}},)", below(random, 300)) +
                   "{}]";
        default:
            return one_of(random, tools);
    }
}

}  // namespace pleat::test
