#include "serve/job_group.h"

#include <gtest/gtest.h>
#include <httplib.h>

#include <thread>

#include "serve/request_error_for_test.h"

namespace pleat {
namespace {

using std::chrono::milliseconds;
using test::Refusal;
using test::refusal_of;

std::vector<std::shared_ptr<Job>> jobs(size_t n) {
    std::vector<std::shared_ptr<Job>> jobs;
    for (size_t i = 0; i < n; ++i) jobs.push_back(std::make_shared<Job>(JobRequest{.prompt = {1}}));
    return jobs;
}

httplib::Request request_of(bool* gone) {
    httplib::Request request;
    request.is_connection_closed = [gone] { return *gone; };
    return request;
}

TEST(JobsOfARequest, AreAllWaitedFor) {
    const auto all = jobs(2);
    JobGroup group(all);
    bool gone = false;
    std::thread engine([&] {
        all[1]->push({.text = "b", .tokens = {{.drawn = {.token = 1}}}});
        all[0]->push({.text = "a"});
        all[0]->push({.text = "a"});
        all[0]->finish({.reason = FinishReason::eos, .seed = 5}, {.text = "!"});
        all[1]->finish({.reason = FinishReason::length}, {.tokens = {{.drawn = {.token = 2}}}});
    });
    const std::vector<Answer> answers = wait_for_answers(group, request_of(&gone));
    engine.join();
    ASSERT_EQ(answers.size(), 2U);
    EXPECT_EQ(answers[0].text, "aa!");
    EXPECT_EQ(answers[0].result.seed, 5U);
    EXPECT_EQ(answers[1].text, "b");
    EXPECT_EQ(answers[1].tokens.size(), 2U);
    EXPECT_EQ(answers[1].result.reason, FinishReason::length);
    EXPECT_TRUE(group.done());
}

TEST(JobsOfARequest, AreCancelledWhenTheClientGoesAway) {
    const auto all = jobs(2);
    bool gone = true;
    {
        JobGroup group(all);
        const httplib::Request request = request_of(&gone);
        EXPECT_EQ(refusal_of([&] { wait_for_answers(group, request); }).status, 499);
    }
    EXPECT_TRUE(all[0]->cancelled());
    EXPECT_TRUE(all[1]->cancelled());
}

TEST(JobsOfARequest, AreCancelledWhenNobodyWaits) {
    const auto all = jobs(2);
    all[0]->finish({.reason = FinishReason::eos});
    {
        JobGroup group(all);
        EXPECT_EQ(group.next(milliseconds(1000))->index, 0U);
    }
    EXPECT_FALSE(all[0]->cancelled());
    EXPECT_TRUE(all[1]->cancelled());
}

TEST(JobsOfARequest, SayWhoseFaultAnErrorIs) {
    const auto status_of = [](JobResult result) {
        const auto all = jobs(1);
        all[0]->finish(std::move(result));
        JobGroup group(all);
        return refusal_of([&] { group.next(milliseconds(1000)); });
    };
    const Refusal theirs =
        status_of({.error = "the grammar leaves no token", .client_error = true});
    EXPECT_EQ(theirs.status, 400);
    EXPECT_EQ(theirs.message, "the grammar leaves no token");
    EXPECT_EQ(status_of({.error = "the backend failed"}).status, 500);
    EXPECT_EQ(status_of({.reason = FinishReason::cancelled}).status, 503);
}

TEST(JobsOfARequest, AreNotWaitedForWithoutEnd) {
    JobGroup one(jobs(1));
    EXPECT_FALSE(one.next(milliseconds(1)).has_value());
    JobGroup two(jobs(2));
    EXPECT_FALSE(two.next(milliseconds(1)).has_value());
}

TEST(JobsOfARequest, AreEndedByTheServersEndWhateverTheEngineIsAt) {
    bool ending = false;
    const auto all = jobs(1);
    JobGroup group(all, [&] { return ending; });
    EXPECT_FALSE(group.next(milliseconds(1)).has_value());
    ending = true;
    EXPECT_EQ(refusal_of([&] { group.next(milliseconds(1)); }).status, 503);
    all[0]->finish({.reason = FinishReason::eos});
    EXPECT_TRUE(group.next(milliseconds(1))->event.last) << "what has ended is told";
}

TEST(JobsOfARequest, TakeTurns) {
    const auto all = jobs(3);
    JobGroup group(all);
    for (const auto& job : all) job->push({.text = "x"});
    std::vector<size_t> order;
    for (int i = 0; i < 3; ++i) {
        order.push_back(group.next(milliseconds(1000))->index);
        all[order.back()]->push({.text = "more"});
    }
    EXPECT_EQ(order, (std::vector<size_t>{0, 1, 2}));
}

}  // namespace
}  // namespace pleat
