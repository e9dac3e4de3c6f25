#include "serve/job.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

namespace pleat {
namespace {

using namespace std::chrono_literals;

JobEvent event(const std::string& text, int32_t token) {
    JobEvent event;
    event.text = text;
    event.tokens.push_back({.drawn = {.token = token}});
    return event;
}

TEST(Job, JoinsWhatNobodyTookYet) {
    Job job{JobRequest{}};
    job.push(event("a", 1));
    job.push(event("b", 2));
    const auto both = job.next(0ms);
    ASSERT_TRUE(both.has_value());
    EXPECT_EQ(both->text, "ab");
    ASSERT_EQ(both->tokens.size(), 2U);
    EXPECT_EQ(both->tokens[1].drawn.token, 2);
    EXPECT_FALSE(both->last);
    EXPECT_FALSE(job.next(0ms).has_value());
}

TEST(Job, EndsWithItsResultAndWhatWasLeft) {
    Job job{JobRequest{}};
    job.push(event("a", 1));
    job.finish({.reason = FinishReason::eos, .seed = 7}, event("b", 2));
    const auto last = job.next(0ms);
    ASSERT_TRUE(last.has_value());
    EXPECT_EQ(last->text, "ab");
    EXPECT_TRUE(last->last);
    EXPECT_EQ(job.result().reason, FinishReason::eos);
    EXPECT_EQ(job.result().seed, 7U);
    EXPECT_FALSE(job.next(0ms).has_value());
}

TEST(Job, HandsEverythingToAThreadThatWaits) {
    Job job{JobRequest{}};
    std::thread engine([&] {
        for (int i = 0; i < 1000; ++i) job.push(event("x", i));
        job.finish({});
    });
    std::string text;
    int32_t next = 0;
    for (bool last = false; !last;) {
        const auto got = job.next(1min);
        ASSERT_TRUE(got.has_value());
        text += got->text;
        for (const TokenOutput& token : got->tokens) EXPECT_EQ(token.drawn.token, next++);
        last = got->last;
    }
    engine.join();
    EXPECT_EQ(text, std::string(1000, 'x'));
}

}  // namespace
}  // namespace pleat
