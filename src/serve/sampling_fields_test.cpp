#include "serve/sampling_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "serve/request_error_for_test.h"
#include "text/demo_model_for_test.h"

namespace pleat {
namespace {

using nlohmann::ordered_json;
using test::json;
using test::Refusal;
using test::refusal_of;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint32_t n_ctx = 512;
constexpr float forbidden = -std::numeric_limits<float>::infinity();

SamplingParams read(const std::string& text, const SamplingParams& defaults = {},
                    const RequestLimits& limits = {}) {
    const ordered_json object = json(text);
    return sampling_fields(Fields(object), defaults, test::demo_tokenizer(), n_ctx, limits);
}

Refusal refused(const std::string& text, const RequestLimits& limits = {}) {
    return refusal_of([&] { read(text, {}, limits); });
}

struct NumberCase {
    std::string name;
    float SamplingParams::*real = nullptr;
    int32_t SamplingParams::*integer = nullptr;
    double low = 0;
    double high = 0;
    double valid = 0;
};

const std::vector<NumberCase>& number_cases() {
    using P = SamplingParams;
    constexpr double any = 1e6;
    constexpr double any_int = INT32_MAX;
    static const std::vector<NumberCase> cases{
        {.name = "temperature", .real = &P::temp, .low = -any, .high = any, .valid = 1.5},
        {.name = "dynatemp_range", .real = &P::dynatemp_range, .high = any, .valid = 0.5},
        {.name = "dynatemp_exponent", .real = &P::dynatemp_exponent, .high = any, .valid = 2},
        {.name = "top_k", .integer = &P::top_k, .low = -any_int, .high = any_int, .valid = 7},
        {.name = "top_p", .real = &P::top_p, .high = 1, .valid = 0.25},
        {.name = "min_p", .real = &P::min_p, .high = 1, .valid = 0.25},
        {.name = "top_n_sigma", .real = &P::top_n_sigma, .low = -any, .high = any, .valid = 2},
        {.name = "xtc_probability", .real = &P::xtc_probability, .high = 1, .valid = 0.25},
        {.name = "xtc_threshold", .real = &P::xtc_threshold, .high = 1, .valid = 0.25},
        {.name = "typical_p", .real = &P::typical_p, .high = 1, .valid = 0.25},
        {.name = "repeat_last_n",
         .integer = &P::penalty_last_n,
         .low = -1,
         .high = any,
         .valid = 9},
        {.name = "repeat_penalty",
         .real = &P::penalty_repeat,
         .low = 0.01,
         .high = 100,
         .valid = 2},
        {.name = "presence_penalty",
         .real = &P::penalty_present,
         .low = -any,
         .high = any,
         .valid = -2},
        {.name = "frequency_penalty",
         .real = &P::penalty_freq,
         .low = -any,
         .high = any,
         .valid = 2},
        {.name = "dry_multiplier", .real = &P::dry_multiplier, .high = any, .valid = 0.5},
        {.name = "dry_base", .real = &P::dry_base, .high = any, .valid = 1.5},
        {.name = "dry_allowed_length", .integer = &P::dry_allowed_length, .high = any, .valid = 3},
        {.name = "dry_penalty_last_n",
         .integer = &P::dry_penalty_last_n,
         .low = -1,
         .high = any,
         .valid = 30},
        {.name = "mirostat", .integer = &P::mirostat, .high = 2, .valid = 2},
        {.name = "mirostat_tau", .real = &P::mirostat_tau, .high = any, .valid = 4},
        {.name = "mirostat_eta", .real = &P::mirostat_eta, .high = any, .valid = 0.25},
        {.name = "adaptive_target",
         .real = &P::adaptive_target,
         .low = -any,
         .high = 1,
         .valid = 0.5},
        {.name = "adaptive_decay", .real = &P::adaptive_decay, .high = 0.99, .valid = 0.5},
        {.name = "min_keep", .integer = &P::min_keep, .high = any_int, .valid = 3},
    };
    return cases;
}

TEST(SamplingFields, EachNumberIsReadIntoItsMemberAlone) {
    for (const NumberCase& c : number_cases()) {
        SCOPED_TRACE(c.name);
        SamplingParams expected;
        if (c.real != nullptr) {
            expected.*c.real = static_cast<float>(c.valid);
        } else {
            expected.*c.integer = static_cast<int32_t>(c.valid);
        }
        EXPECT_EQ(read(ordered_json{{c.name, c.valid}}.dump()), expected);
        EXPECT_EQ(read(ordered_json{{c.name, nullptr}}.dump()), SamplingParams());
    }
}

TEST(SamplingFields, EachNumberHasItsTypeAndRange) {
    for (const NumberCase& c : number_cases()) {
        SCOPED_TRACE(c.name);
        const auto value = [&](const ordered_json& it) {
            return ordered_json{{c.name, it}}.dump();
        };
        for (const ordered_json& wrong : {ordered_json("1"), ordered_json(true),
                                          ordered_json::array({1}), ordered_json::object()}) {
            EXPECT_EQ(refused(value(wrong)).param, c.name);
        }
        const double step = c.integer != nullptr ? 1 : 0.5;
        for (const double out : {c.low - step, c.high + step}) {
            const Refusal refusal = refused(value(out));
            EXPECT_EQ(refusal.param, c.name);
            EXPECT_THAT(refusal.message, HasSubstr("must be between"));
        }
        EXPECT_NO_THROW(read(value(c.low)));
        EXPECT_NO_THROW(read(value(c.high)));
        if (c.integer != nullptr) {
            EXPECT_EQ(refused(value(c.low + 0.5)).param, c.name);
        }
    }
}

TEST(SamplingFields, EachNumberIsToldAsItWasGiven) {
    for (const NumberCase& c : number_cases()) {
        SCOPED_TRACE(c.name);
        const ordered_json told = sampling_json(read(ordered_json{{c.name, c.valid}}.dump()));
        EXPECT_EQ(told.at(c.name).get<double>(), c.valid);
    }
    // Nothing else is told but these.
    EXPECT_EQ(sampling_json({}).size(), number_cases().size() + 4);
}

TEST(SamplingFields, NothingSaidMeansTheServersDefaults) {
    SamplingParams defaults;
    defaults.temp = 0.25F;
    defaults.seed = 5;
    defaults.logit_bias = {{.token = 3, .bias = 1.0F}};
    EXPECT_EQ(read("{}", defaults), defaults);
}

TEST(SamplingFields, MinusOneLooksBackAtAll) {
    EXPECT_EQ(read(R"({"repeat_last_n": -1})").penalty_last_n, 512);
    EXPECT_EQ(read(R"({"dry_penalty_last_n": -1})").dry_penalty_last_n, 512);
}

TEST(SamplingFields, SeedsOf64BitsAreTaken) {
    EXPECT_EQ(read(R"({"seed": 42})").seed, 42U);
    EXPECT_EQ(read(R"({"seed": -1})").seed, SamplingParams::random_seed);
    EXPECT_EQ(read(R"({"seed": 4294967295})").seed, SamplingParams::random_seed);
    // No other seed becomes the random one.
    EXPECT_NE(read(R"({"seed": 8589934591})").seed, SamplingParams::random_seed);
    EXPECT_NE(read(R"({"seed": -9223372036854775808})").seed, SamplingParams::random_seed);
    EXPECT_EQ(refused(R"({"seed": 9223372036854775808})").param, "seed");
    EXPECT_EQ(refused(R"({"seed": "1"})").param, "seed");
}

TEST(SamplingFields, SamplersComeAsNamesOrLetters) {
    const auto expected = ElementsAre(SamplerKind::top_k, SamplerKind::temperature);
    EXPECT_THAT(read(R"({"samplers": ["top_k", "temperature"]})").samplers, expected);
    EXPECT_THAT(read(R"({"samplers": "kt"})").samplers, expected);
    EXPECT_THAT(read(R"({"samplers": []})").samplers, ElementsAre());
    EXPECT_THAT(refused(R"({"samplers": ["top_k", "bogus"]})").message,
                HasSubstr("samplers: no sampler is named \"bogus\"; there are penalties"));
    EXPECT_EQ(refused(R"({"samplers": "k?"})").param, "samplers");
    EXPECT_EQ(refused(R"({"samplers": [1]})").param, "samplers[0]");
    EXPECT_EQ(refused(R"({"samplers": [""]})").param, "samplers");
    EXPECT_EQ(refused(R"({"samplers": 1})").param, "samplers");
    EXPECT_EQ(refused(R"({"samplers": ")" + std::string(65, 'k') + "\"}").param, "samplers");
}

TEST(SamplingFields, SequenceBreakersAreShortTexts) {
    EXPECT_THAT(read(R"({"dry_sequence_breakers": ["a", "\n"]})").dry_sequence_breakers,
                ElementsAre("a", "\n"));
    for (const std::string wrong : {"[]", "[\"\"]", "[1]", "\"a\"", "[\"a\\u0000\"]",
                                    "[\"12345678901234567890123456789012345678901\"]"}) {
        SCOPED_TRACE(wrong);
        EXPECT_THAT(refused("{\"dry_sequence_breakers\": " + wrong + "}").param,
                    HasSubstr("dry_sequence_breakers"));
    }
}

TEST(SamplingFields, IgnoreEosIsABoolean) {
    EXPECT_TRUE(read(R"({"ignore_eos": true})").ignore_eos);
    EXPECT_EQ(refused(R"({"ignore_eos": 1})").param, "ignore_eos");
}

TEST(LogitBiases, ComeAsOpenAIsObject) {
    EXPECT_THAT(read(R"({"logit_bias": {"5": -100, "7": false, "9": 1.5}})").logit_bias,
                ElementsAre(LogitBias{5, -100.0F}, LogitBias{7, forbidden}, LogitBias{9, 1.5F}));
}

TEST(LogitBiases, ComeAsLlamaServersPairs) {
    EXPECT_THAT(read(R"({"logit_bias": [[5, -1], [7, false]]})").logit_bias,
                ElementsAre(LogitBias{5, -1.0F}, LogitBias{7, forbidden}));
    EXPECT_THAT(read(R"({"logit_bias": []})").logit_bias, ElementsAre());
}

TEST(LogitBiases, OfATextAreThoseOfItsTokens) {
    const std::vector<int32_t> tokens = test::demo_tokenizer().tokenize("hi", false, false);
    ASSERT_EQ(tokens.size(), 2U);
    const auto expected = ElementsAre(LogitBias{tokens[0], 2.0F}, LogitBias{tokens[1], 2.0F});
    EXPECT_THAT(read(R"({"logit_bias": {"hi": 2}})").logit_bias, expected);
    EXPECT_THAT(read(R"({"logit_bias": [["hi", 2]]})").logit_bias, expected);
}

TEST(LogitBiases, AreRefusedWhereTheyMeanNothing) {
    for (const std::string wrong :
         {"5", "\"5\"", "[5]", "[[5]]", "[[5, 1, 2]]", "[[5, true]]", "[[5, \"1\"]]", "[[1.5, 1]]",
          "[[1024, 1]]", "[[-1, 1]]", "[[4294967301, 1]]", "{\"1024\": 1}", "{\"-1\": 1}",
          "{\"99999999999999999999\": 1e7}", "{\"5\": null}", "{\"5\": 1e7}", "[[null, 1]]"}) {
        SCOPED_TRACE(wrong);
        EXPECT_EQ(refused("{\"logit_bias\": " + wrong + "}").param, "logit_bias");
    }
}

TEST(LogitBiases, AreBounded) {
    EXPECT_THAT(refused(R"({"logit_bias": [[1,1],[2,1],[3,1]]})", {.logit_biases = 2}).message,
                HasSubstr("3 elements, at most 2"));
    EXPECT_THAT(refused(R"({"logit_bias": {"hi": 1, "4": 1}})", {.logit_biases = 2}).message,
                HasSubstr("more than 2 tokens"));
    EXPECT_THAT(refused(R"({"logit_bias": {"long": 1}})", {.logit_bias_bytes = 3}).message,
                HasSubstr("4 bytes, at most 3"));
}

}  // namespace
}  // namespace pleat
