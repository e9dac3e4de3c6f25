#include "serve/refused_fields.h"

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

void check(const std::string& text, Endpoint endpoint) {
    const ordered_json object = json(text);
    check_refused_fields(Fields(object), endpoint);
}

TEST(RefusedFields, AreNamedUnlessTheyChangeNothing) {
    struct Case {
        std::string name;
        Endpoint endpoint;
        std::string wanted;
        std::string neutral;
    };
    const std::vector<Case> cases{
        {"echo", Endpoint::text_completion, "true", "false"},
        {"suffix", Endpoint::text_completion, "\"x\"", "\"\""},
        {"best_of", Endpoint::text_completion, "2", "1"},
        {"audio", Endpoint::chat, "{}", "null"},
        {"modalities", Endpoint::chat, "[\"text\",\"audio\"]", "[\"text\"]"},
        {"web_search_options", Endpoint::chat, "{}", "null"},
        {"functions", Endpoint::chat, "[{}]", "[]"},
        {"function_call", Endpoint::chat, "\"auto\"", "\"none\""},
        {"verbosity", Endpoint::chat, "\"low\"", "\"medium\""},
        {"lora", Endpoint::completion, "[{}]", "[]"},
        {"image_data", Endpoint::completion, "[{}]", "[]"},
        {"n_indent", Endpoint::completion, "4", "0"},
        {"post_sampling_probs", Endpoint::completion, "true", "false"},
        {"grammar_lazy", Endpoint::completion, "true", "false"},
        {"grammar_triggers", Endpoint::completion, "[{}]", "[]"},
        {"reasoning_budget_tokens", Endpoint::chat, "5", "-1"},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        const Refusal refusal =
            refusal_of([&] { check("{\"" + c.name + "\": " + c.wanted + "}", c.endpoint); });
        EXPECT_EQ(refusal.status, 400);
        EXPECT_EQ(refusal.param, c.name);
        EXPECT_THAT(refusal.message, HasSubstr("is not offered"));
        EXPECT_NO_THROW(check("{\"" + c.name + "\": " + c.neutral + "}", c.endpoint));
        EXPECT_NO_THROW(check("{\"" + c.name + "\": null}", c.endpoint));
    }
}

TEST(RefusedFields, AreThoseOfTheirEndpoint) {
    EXPECT_NO_THROW(check(R"({"echo": true})", Endpoint::chat));
    EXPECT_NO_THROW(check(R"({"audio": {}})", Endpoint::completion));
}

TEST(RefusedFields, DoNotIncludeWhatChangesNoAnswer) {
    EXPECT_NO_THROW(check(R"({"user": "u", "metadata": {}, "store": true, "service_tier": "auto",
                              "safety_identifier": "s", "prompt_cache_key": "k",
                              "return_progress": true, "n_keep": 4, "bogus": [1]})",
                          Endpoint::chat));
}

TEST(RefusedFields, SayWhatThereIsInstead) {
    EXPECT_EQ(refusal_of([] { check(R"({"best_of": 2})", Endpoint::text_completion); }).message,
              "best_of: is not offered: use n; leave it out or give 1");
    EXPECT_EQ(refusal_of([] { check(R"({"audio": {}})", Endpoint::chat); }).message,
              "audio: is not offered; leave it out");
}

}  // namespace
}  // namespace pleat
