// Random schemas: what their grammars write is valid, what fits is accepted, what is spoilt is not.
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "schema/json_schema.h"
#include "support/gbnf.h"
#include "support/schema_check.h"
#include "text/grammar.h"

namespace pleat {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

using Random = std::mt19937;

size_t below(Random& random, size_t n) {
    return std::uniform_int_distribution<size_t>(0, n - 1)(random);
}

bool chance(Random& random, double p) { return std::bernoulli_distribution(p)(random); }

/// A schema, and values that fit it in the order and form in which they are to be written.
struct Made {
    ordered_json schema;
    std::function<ordered_json(Random&)> value;
};

/// Makes schemas; `refs` are those that may be referred to.
class Maker {
  public:
    Maker(Random& random, std::vector<Made> refs) : random_(random), refs_(std::move(refs)) {}

    Made make(int depth) {
        switch (below(random_, depth > 0 ? 11 : 6)) {
            case 0:
                return constant();
            case 1:
                return integer();
            case 2:
                return number();
            case 3:
                return text();
            case 4:
                return pattern();
            case 5:
                return word();
            case 6:
                return array(depth);
            case 7:
                return tuple(depth);
            case 8:
                return choice(depth);
            case 9:
                return reference();
            default:
                return object(depth);
        }
    }

    Made object(int depth) {
        struct Property {
            std::string name;
            Made made;
            bool required;
        };
        std::vector<Property> properties;
        ordered_json schema = {{"type", "object"}, {"properties", ordered_json::object()}};
        static const std::vector<std::string> names = {"a", "b", "ab", "na me", "é", "q\"", "root"};
        for (const std::string& name : names) {
            if (!chance(random_, 0.5)) continue;
            properties.push_back({name, make(depth - 1), chance(random_, 0.5)});
            schema["properties"][name] = properties.back().made.schema;
            if (properties.back().required) schema["required"].push_back(name);
        }
        std::function<ordered_json(Random&)> other;
        if (chance(random_, 0.3)) {
            const Made made = make(depth - 1);
            schema["additionalProperties"] = made.schema;
            other = made.value;
        } else if (chance(random_, 0.5)) {
            schema["additionalProperties"] = false;
        }
        return {schema, [properties, other](Random& random) {
                    ordered_json value = ordered_json::object();
                    for (const Property& one : properties) {
                        if (one.required || chance(random, 0.5))
                            value[one.name] = one.made.value(random);
                    }
                    for (const char* name : {"a!", "nam", "zz"}) {
                        if (other && chance(random, 0.4)) value[name] = other(random);
                    }
                    return value;
                }};
    }

  private:
    static ordered_json any_value(Random& random) {
        static const ordered_json values = {nullptr,
                                            true,
                                            0,
                                            -7,
                                            2.5,
                                            "",
                                            "a\"\\\n",
                                            "é😀",
                                            ordered_json::array({1, {{"k", nullptr}}}),
                                            {{"x", ordered_json::array()}, {"y", 1}}};
        return values[below(random, values.size())];
    }

    Made constant() {
        ordered_json values = ordered_json::array();
        for (size_t i = 0; i <= below(random_, 20); ++i) values.push_back(any_value(random_));
        const ordered_json schema = values.size() == 1 ? ordered_json{{"const", values[0]}}
                                                       : ordered_json{{"enum", values}};
        return {schema, [values](Random& random) { return values[below(random, values.size())]; }};
    }

    Made integer() {
        const int scale = std::vector<int>{1, 10, 1000, 1'000'000}[below(random_, 4)];
        const int low = static_cast<int>(below(random_, 200)) * scale - 100 * scale;
        const int high = low + static_cast<int>(below(random_, 50)) * scale + 2;
        ordered_json schema = {{"type", "integer"}};
        schema[chance(random_, 0.5) ? "minimum" : "exclusiveMinimum"] = low;
        schema[chance(random_, 0.5) ? "maximum" : "exclusiveMaximum"] = high;
        return {schema, [low, high](Random& random) {
                    return low + 1 +
                           static_cast<int>(below(random, static_cast<size_t>(high - low - 1)));
                }};
    }

    Made number() {
        const double low = (static_cast<double>(below(random_, 4000)) - 2000) / 100;
        const double high = low + static_cast<double>(below(random_, 300) + 2) / 100;
        ordered_json schema = {{"type", "number"}};
        schema[chance(random_, 0.5) ? "minimum" : "exclusiveMinimum"] = low;
        schema[chance(random_, 0.5) ? "maximum" : "exclusiveMaximum"] = high;
        return {schema, [low, high](Random& random) {
                    const double share = static_cast<double>(below(random, 9) + 1) / 10;
                    return std::round((low + (high - low) * share) * 1e6) / 1e6 + 0.0;
                }};
    }

    static std::string some_text(Random& random, size_t n) {
        static const std::vector<std::string> characters = {"a",  "Z",  "0", " ",  "\"",
                                                            "\\", "\n", "é", "漢", "😀"};
        std::string text;
        for (size_t i = 0; i < n; ++i) text += characters[below(random, characters.size())];
        return text;
    }

    Made text() {
        const size_t low = below(random_, 4);
        const size_t high = low + std::vector<size_t>{0, 2, 70, 200}[below(random_, 4)];
        ordered_json schema = {{"type", "string"}, {"minLength", low}, {"maxLength", high}};
        return {schema, [low, high](Random& random) {
                    return some_text(random, low + below(random, high - low + 1));
                }};
    }

    Made pattern() {
        struct Example {
            std::string pattern;
            std::vector<std::string> texts;
        };
        static const std::vector<Example> examples = {
            {"^[a-c]+\\d{1,2}$", {"a1", "cab99"}},
            {"b", {"b", "xb\"", "éb\n"}},
            {"^(x|yz)*w?$", {"", "w", "xyzx"}},
            {"^[^a-z\"]{2}", {"AB", "É1 and more", "\n\\"}},
            {"^-?(0|[1-9]\\d*)(\\.\\d+)?$", {"0", "-12.50"}},
            {"(foo|bar)$", {"foo", "rebar"}}};
        const Example& example = examples[below(random_, examples.size())];
        return {{{"type", "string"}, {"pattern", example.pattern}}, [&example](Random& random) {
                    return example.texts[below(random, example.texts.size())];
                }};
    }

    Made word() {
        const bool null = chance(random_, 0.5);
        const ordered_json schema = {
            {"type", null ? ordered_json{"boolean", "null"} : ordered_json("boolean")}};
        return {schema, [null](Random& random) {
                    return null && chance(random, 0.5) ? ordered_json()
                                                       : ordered_json(chance(random, 0.5));
                }};
    }

    Made array(int depth) {
        const Made item = make(depth - 1);
        const size_t low = below(random_, 3);
        const size_t high = low + below(random_, 4);
        ordered_json schema = {
            {"type", "array"}, {"items", item.schema}, {"minItems", low}, {"maxItems", high}};
        return {schema, [item, low, high](Random& random) {
                    ordered_json value = ordered_json::array();
                    const size_t n = low + below(random, high - low + 1);
                    for (size_t i = 0; i < n; ++i) value.push_back(item.value(random));
                    return value;
                }};
    }

    Made tuple(int depth) {
        std::vector<Made> items;
        ordered_json schema = {{"type", "array"}, {"prefixItems", ordered_json::array()}};
        for (size_t i = 0; i <= below(random_, 3); ++i) {
            items.push_back(make(depth - 1));
            schema["prefixItems"].push_back(items.back().schema);
        }
        const size_t low = chance(random_, 0.5) ? items.size() : below(random_, items.size());
        if (low < items.size()) schema["minItems"] = low;
        return {schema, [items, low](Random& random) {
                    ordered_json value = ordered_json::array();
                    const size_t n = low + below(random, items.size() - low + 1);
                    for (size_t i = 0; i < n; ++i) value.push_back(items[i].value(random));
                    return value;
                }};
    }

    Made choice(int depth) {
        std::vector<Made> parts;
        ordered_json schema = {{"anyOf", ordered_json::array()}};
        for (size_t i = 0; i <= below(random_, 3); ++i) {
            parts.push_back(make(depth - 1));
            schema["anyOf"].push_back(parts.back().schema);
        }
        return {schema, [parts](Random& random) {
                    return parts[below(random, parts.size())].value(random);
                }};
    }

    Made reference() {
        if (refs_.empty()) return integer();
        const Made& one = refs_[below(random_, refs_.size())];
        return one;
    }

    Random& random_;
    std::vector<Made> refs_;
};

/// A schema with definitions, one of which refers to itself.
Made random_schema(Random& random) {
    Made shared = Maker(random, {}).make(1);
    const ordered_json shared_schema = shared.schema;
    shared.schema = {{"$ref", "#/$defs/shared"}};
    Made tree;
    tree.schema = {{"$ref", "#/$defs/tree"}};
    tree.value = [](Random& one) {
        ordered_json value = {{"v", static_cast<int>(below(one, 9))}};
        for (size_t n = below(one, 4); n > 0; --n)
            value = {{"v", 1}, {"sub", ordered_json::array({value})}};
        return value;
    };
    Made made = Maker(random, {shared, tree}).object(3);
    made.schema["$defs"] = {{"shared", shared_schema}};
    made.schema["$defs"]["tree"] = ordered_json::parse(
        R"({"type":"object","properties":{"v":{"type":"integer"},"sub":{"type":"array","items":{"$ref":"#/$defs/tree"}}},"required":["v"]})");
    return made;
}

/// Changes one thing somewhere in a value.
void spoil(Random& random, ordered_json& value) {
    if (value.is_structured() && !value.empty() && chance(random, 0.8)) {
        auto it = value.begin();
        std::advance(it, static_cast<std::ptrdiff_t>(below(random, value.size())));
        if (chance(random, 0.2)) {
            value.erase(it);
        } else {
            spoil(random, *it);
        }
        return;
    }
    static const ordered_json others = {
        nullptr, false, 12345, -0.125, "b", "zzzzzz", ordered_json::array(), {{"v", 3}}};
    if (value.is_object()) value["new"] = others[below(random, others.size())];
    if (value.is_array()) value.push_back(others[below(random, others.size())]);
    if (!value.is_structured()) value = others[below(random, others.size())];
}

TEST(JsonSchemaProperty, GrammarsOfRandomSchemasWriteAndTakeWhatIsValid) {
    const Tokenizer tokenizer = Tokenizer::open(PLEAT_MODELS_DIR "/pleat-demo-llama-16L-q4_0.gguf");
    size_t n_spoilt = 0;
    for (uint32_t seed = 0; seed < 300; ++seed) {
        Random random(seed);
        const Made made = random_schema(random);
        SCOPED_TRACE(fmt::format("seed {}: {}", seed, made.schema.dump()));
        std::string grammar;
        ASSERT_NO_THROW(grammar = json_schema_grammar(made.schema));
        ASSERT_NO_THROW(check_grammar(grammar, "root", tokenizer));
        const test::Gbnf gbnf(grammar);
        const json root = made.schema;
        for (size_t i = 0; i < 8; ++i) {
            const std::string written = gbnf.sentence(random, 20 * i);
            ASSERT_TRUE(json::accept(written)) << written;
            ASSERT_TRUE(test::is_valid(root, json::parse(written), root)) << written;

            ordered_json fit = made.value(random);
            ASSERT_TRUE(test::is_valid(root, fit, root)) << fit;
            ASSERT_TRUE(gbnf.accepts(fit.dump())) << fit;
            spoil(random, fit);
            if (test::is_valid(root, fit, root)) continue;
            ++n_spoilt;
            ASSERT_FALSE(gbnf.accepts(fit.dump())) << fit;
        }
    }
    EXPECT_GT(n_spoilt, 500U);
}

}  // namespace
}  // namespace pleat
