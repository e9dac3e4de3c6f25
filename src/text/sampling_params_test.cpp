#include "text/sampling_params.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "text/demo_model_for_test.h"

namespace pleat {
namespace {

using test::demo_tokenizer;
using test::message_of;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(SamplingParams, HaveStocksDefaultOrder) {  // llama-completion --help of the same release
    EXPECT_EQ(parse_samplers("penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature"),
              SamplingParams{}.samplers);
    EXPECT_EQ(parse_sampling_sequence("edskypmxt"), SamplingParams{}.samplers);
}

TEST(SamplingParams, ReadSamplersByNameAndAlias) {
    EXPECT_THAT(parse_samplers("top-k;nucleus;temp"),
                ElementsAre(SamplerKind::top_k, SamplerKind::top_p, SamplerKind::temperature));
    EXPECT_THAT(parse_samplers(""), ElementsAre());
    EXPECT_EQ(message_of([] { parse_samplers("top_k;quux"); }),
              "--samplers: no sampler is named \"quux\"; there are penalties, dry, top_n_sigma, "
              "top_k, typ_p, top_p, min_p, xtc, temperature, infill, adaptive_p");
    EXPECT_THAT(message_of([] { parse_samplers("top_k;;temp"); }), HasSubstr("is named \"\""));
    EXPECT_THAT(message_of([] { parse_sampling_sequence("kz"); }),
                HasSubstr("no sampler has the letter \"z\"; there are e penalties, d dry"));
}

TEST(SamplingParams, ReadLogitBiases) {
    EXPECT_EQ(parse_logit_bias("15043+1"), (LogitBias{15043, 1.0F}));
    EXPECT_EQ(parse_logit_bias("7-0.5"), (LogitBias{7, -0.5F}));
    EXPECT_EQ(parse_logit_bias("7-inf"), (LogitBias{7, -INFINITY}));
    for (const std::string text : {"", "7", "+1", "7*1", "7+", "7+-1", "7+1x", "99999999999+1"}) {
        EXPECT_THAT(message_of([&] { parse_logit_bias(text); }), HasSubstr("--logit-bias")) << text;
    }
}

TEST(SamplingParams, OutOfRangeAreRefusedByTheirFlag) {
    struct Row {
        std::string flag;
        std::function<void(SamplingParams&, float)> set;
        std::vector<float> bad;
    };
    const std::vector<Row> rows{
        {"--top-p", [](auto& p, float v) { p.top_p = v; }, {-0.1F, 1.1F}},
        {"--min-p", [](auto& p, float v) { p.min_p = v; }, {-0.1F, 1.1F}},
        {"--typical-p", [](auto& p, float v) { p.typical_p = v; }, {-0.1F, 1.1F}},
        {"--temp", [](auto& p, float v) { p.temp = v; }, {}},
        {"--top-n-sigma", [](auto& p, float v) { p.top_n_sigma = v; }, {}},
        {"--xtc-probability", [](auto& p, float v) { p.xtc_probability = v; }, {-0.1F, 1.1F}},
        {"--xtc-threshold", [](auto& p, float v) { p.xtc_threshold = v; }, {-0.1F, 1.1F}},
        {"--dynatemp-range", [](auto& p, float v) { p.dynatemp_range = v; }, {-1.0F}},
        {"--dynatemp-exp", [](auto& p, float v) { p.dynatemp_exponent = v; }, {-1.0F}},
        {"--repeat-penalty", [](auto& p, float v) { p.penalty_repeat = v; }, {0.0F, -1.0F}},
        {"--frequency-penalty", [](auto& p, float v) { p.penalty_freq = v; }, {}},
        {"--presence-penalty", [](auto& p, float v) { p.penalty_present = v; }, {}},
        {"--dry-multiplier", [](auto& p, float v) { p.dry_multiplier = v; }, {-1.0F}},
        {"--dry-base", [](auto& p, float v) { p.dry_base = v; }, {-1.0F}},
        {"--adaptive-target", [](auto& p, float v) { p.adaptive_target = v; }, {1.1F}},
        {"--adaptive-decay", [](auto& p, float v) { p.adaptive_decay = v; }, {-0.1F, 1.0F}},
        {"--mirostat-ent", [](auto& p, float v) { p.mirostat_tau = v; }, {-1.0F}},
        {"--mirostat-lr", [](auto& p, float v) { p.mirostat_eta = v; }, {-1.0F}},
    };
    for (const Row& row : rows) {
        std::vector<float> bad = row.bad;
        bad.insert(bad.end(), {NAN, INFINITY});
        for (const float value : bad) {
            SamplingParams params;
            row.set(params, value);
            EXPECT_THAT(message_of([&] { check_sampling_params(params, demo_tokenizer()); }),
                        testing::StartsWith(row.flag + " "));
        }
    }
}

TEST(SamplingParams, OutOfRangeCountsAreRefusedByTheirFlag) {
    const auto refusal = [](const SamplingParams& params) {
        return message_of([&] { check_sampling_params(params, demo_tokenizer()); });
    };
    EXPECT_EQ(refusal({.mirostat = 3}), "--mirostat 3: must be between 0 and 2");
    EXPECT_THAT(refusal({.min_keep = -1}), HasSubstr("--min-keep -1"));
    EXPECT_THAT(refusal({.penalty_last_n = -1}), HasSubstr("--repeat-last-n -1"));
    EXPECT_THAT(refusal({.dry_allowed_length = -1}), HasSubstr("--dry-allowed-length -1"));
    EXPECT_THAT(refusal({.dry_penalty_last_n = 2147483647}), HasSubstr("--dry-penalty-last-n"));
    EXPECT_THAT(refusal({.dry_sequence_breakers = {""}}), HasSubstr("--dry-sequence-breaker"));
    EXPECT_THAT(refusal({.samplers = std::vector<SamplerKind>(65)}), HasSubstr("--samplers"));
    EXPECT_THAT(refusal({.logit_bias = {{1024, 1.0F}}}),
                HasSubstr("--logit-bias: token 1024 is not in the vocabulary of 1024"));
    EXPECT_THAT(refusal({.logit_bias = {{1, INFINITY}}}), HasSubstr("--logit-bias inf"));
    EXPECT_NO_THROW(
        check_sampling_params({.top_k = -5, .logit_bias = {{1, -INFINITY}}}, demo_tokenizer()));
}

}  // namespace
}  // namespace pleat
