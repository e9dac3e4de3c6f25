#include "serve/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <sstream>

namespace pleat {
namespace {

using testing::HasSubstr;

MetricsInput input() {
    return {.counters = {.prompt_tokens = 100,
                         .cached_tokens = 20,
                         .predicted_tokens = 50,
                         .prompt_seconds = 2.0,
                         .predicted_seconds = 4.0,
                         .decode_steps = 40,
                         .busy_slots_sum = 60,
                         .jobs_done = 1,
                         .jobs_failed = 2,
                         .jobs_cancelled = 3,
                         .jobs_refused = 4,
                         .waiting = 5,
                         .running = 6},
            .slots = {{.variant = 0, .id = 0, .busy = true, .n_cached = 7},
                      {.variant = 0, .id = 1},
                      {.variant = 1, .id = 0, .n_cached = 8}},
            .variants = {{.name = "base", .plan = "0..3", .plan_hash = "00ff", .cache_bytes = 10},
                         {.name = "deep", .plan = "0..3,2..3", .plan_hash = "11ff"}},
            .weight_bytes = 1000,
            .n_tokens_max = 77};
}

TEST(Metrics, HaveLlamaServersNames) {
    const std::string text = metrics_text(input());
    for (const char* const line :
         {"llamacpp:prompt_tokens_total 100\n", "llamacpp:prompt_tokens_cached_total 20\n",
          "llamacpp:prompt_seconds_total 2\n", "llamacpp:tokens_predicted_total 50\n",
          "llamacpp:tokens_predicted_seconds_total 4\n", "llamacpp:n_decode_total 40\n",
          "llamacpp:n_tokens_max 77\n", "llamacpp:prompt_tokens_seconds 50\n",
          "llamacpp:predicted_tokens_seconds 12.5\n", "llamacpp:requests_processing 6\n",
          "llamacpp:requests_deferred 5\n", "llamacpp:n_busy_slots_per_decode 1.5\n"}) {
        EXPECT_THAT(text, HasSubstr(line));
    }
}

TEST(Metrics, TellVariantsApart) {
    const std::string text = metrics_text(input());
    for (const char* const line :
         {"pleat:jobs_total{result=\"done\"} 1\n", "pleat:jobs_total{result=\"refused\"} 4\n",
          "pleat:weight_bytes 1000\n",
          "pleat:variant_info{model=\"deep\",plan=\"0..3,2..3\",plan_hash=\"11ff\"} 1\n",
          "pleat:cache_bytes{model=\"base\"} 10\n",
          "pleat:slots{model=\"base\",state=\"busy\"} 1\n",
          "pleat:slots{model=\"base\",state=\"idle\"} 1\n",
          "pleat:slots{model=\"deep\",state=\"busy\"} 0\n",
          "pleat:slot_cached_tokens{model=\"deep\",slot=\"0\"} 8\n"}) {
        EXPECT_THAT(text, HasSubstr(line));
    }
}

TEST(Metrics, AreWellFormed) {
    const std::regex help(R"(# HELP [a-z:_]+ \S.*)");
    const std::regex type(R"(# TYPE [a-z:_]+ (counter|gauge))");
    const std::regex sample(R"x([a-z:_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? [0-9.e+-]+)x");
    std::istringstream lines(metrics_text(input()));
    for (std::string line; std::getline(lines, line);) {
        EXPECT_TRUE(std::regex_match(line, help) || std::regex_match(line, type) ||
                    std::regex_match(line, sample))
            << line;
    }
}

TEST(Metrics, OfAServerThatDidNothingAreZero) {
    EXPECT_THAT(metrics_text({}), HasSubstr("llamacpp:predicted_tokens_seconds 0\n"));
    EXPECT_THAT(metrics_text({}), testing::Not(HasSubstr("nan")));
}

TEST(Metrics, EscapeLabels) { EXPECT_EQ(label_text("a\"b\\c\nd"), "a\\\"b\\\\c\\nd"); }

}  // namespace
}  // namespace pleat
