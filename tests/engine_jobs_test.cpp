#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "gguf/file.h"
#include "support/engine_run.h"
#include "support/random_model.h"
#include "support/random_tokens.h"
#include "support/temp_file.h"

// What an engine does with jobs that are cancelled, refused, broken or out of time.
namespace pleat::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr int n_vocab = 512;

const std::string& model_path(ggml_type type = GGML_TYPE_Q8_0) {
    return make_model({.n_vocab = n_vocab, .tokenizer = true}, type).path();
}
std::vector<int32_t> prompt(size_t n, uint32_t seed = 1) { return random_tokens(seed, n, n_vocab); }

/// Goes on until somebody stops it, or a context of 8192 tokens is full.
JobRequest endless(size_t n_prompt = 5) { return greedy(prompt(n_prompt), -1); }
EngineSettings roomy(uint32_t n_slots) { return engine_settings(n_slots, 8192); }

std::shared_ptr<Job> submitted(EngineRun& run, const JobRequest& request) {
    auto job = std::make_shared<Job>(request);
    EXPECT_TRUE(run.engine().submit(std::vector{job}));
    return job;
}
bool accepted(EngineRun& run, std::vector<JobRequest> requests) {
    std::vector<std::shared_ptr<Job>> jobs;
    for (JobRequest& request : requests) jobs.push_back(std::make_shared<Job>(std::move(request)));
    const bool taken = run.engine().submit(jobs);
    for (const auto& job : jobs) job->cancel();
    return taken;
}
void wait_until_generating(Job& job) {
    while (true) {
        const auto event = job.next(1min);
        ASSERT_TRUE(event.has_value());
        if (!event->tokens.empty()) return;
    }
}

std::string refusal(EngineRun& run, const JobRequest& request) {
    try {
        run.run(request);
    } catch (const Error& error) {
        return error.what();
    }
    return "taken";
}

TEST(EngineJobs, ThatAreCancelledFreeTheirSlotWithinAStep) {
    EngineRun run(model_path(), roomy(1));
    const auto first = submitted(run, endless());
    const auto second = submitted(run, greedy(prompt(40), 3));
    wait_until_generating(*first);
    EXPECT_FALSE(second->started());
    first->cancel();
    const uint64_t n_predicted = run.engine().counters().predicted_tokens;
    const Answer answer = wait_for(*first);
    EXPECT_EQ(answer.result.reason, FinishReason::cancelled);
    EXPECT_EQ(answer.result.error, "");
    // One step may have been under way, and one may not have been counted yet.
    EXPECT_LE(answer.result.timings.n_predicted, n_predicted + 2);
    EXPECT_EQ(wait_for(*second).tokens.size(), 3U);
    EXPECT_TRUE(run.engine().drain(1min));
    EXPECT_FALSE(run.engine().slots().front().busy);
    EXPECT_EQ(run.engine().counters().jobs_cancelled, 1U);
}

TEST(EngineJobs, ThatAreCancelledAtTheirPromptOrInTheQueueEndToo) {
    EngineRun run(model_path(), engine_settings(1, 8192, 1));  // a prompt token a turn
    const auto running = submitted(run, greedy(prompt(8000), 1));
    const auto waiting = submitted(run, greedy(prompt(10), 1));
    while (!running->started()) std::this_thread::yield();
    waiting->cancel();
    const Answer never_begun = wait_for(*waiting);
    EXPECT_EQ(never_begun.result.reason, FinishReason::cancelled);
    EXPECT_EQ(never_begun.result.slot, -1);
    EXPECT_FALSE(waiting->started());
    running->cancel();
    const Answer broken_off = wait_for(*running);
    EXPECT_EQ(broken_off.result.reason, FinishReason::cancelled);
    EXPECT_EQ(broken_off.tokens.size(), 0U);
    EXPECT_EQ(run.run(greedy(prompt(3), 2)).tokens.size(), 2U);
}

TEST(EngineJobs, AreRefusedTogetherWhenTheQueueIsFull) {
    EngineSettings settings = roomy(1);
    settings.queue = 3;
    EngineRun run(model_path(), settings);
    const auto running = submitted(run, endless());
    wait_until_generating(*running);
    const auto first = submitted(run, greedy(prompt(4), 1));
    EXPECT_FALSE(accepted(run, {greedy(prompt(1)), greedy(prompt(2)), greedy(prompt(3))}));
    EXPECT_EQ(run.engine().counters().waiting, 1U);

    EXPECT_TRUE(accepted(run, {greedy(prompt(1)), greedy(prompt(2))}));
    // More than ever fit: waiting would not help.
    const JobRequest any = greedy(prompt(1));
    EXPECT_THROW(accepted(run, {any, any, any, any}), Error);
    running->cancel();
    EXPECT_EQ(wait_for(*first).tokens.size(), 1U);
}

TEST(EngineJobs, WaitForTheSlotTheyAskFor) {
    EngineRun run(model_path(), roomy(3));
    const auto busy = submitted(run, endless());
    wait_until_generating(*busy);
    JobRequest request = greedy(prompt(40), 2);
    request.slot = 2;
    EXPECT_EQ(run.run(request).result.slot, 2);
    request.slot = -1;
    const Answer again = run.run(request);
    EXPECT_EQ(again.result.slot, 2);  // it holds the prompt
    EXPECT_EQ(again.result.timings.n_cached, 32U);
    EXPECT_EQ(run.run(greedy(prompt(40, 7), 2)).result.slot, 1);  // never used
    request.slot = 0;
    const auto waiting = submitted(run, request);
    EXPECT_EQ(run.run(greedy(prompt(10), 2)).tokens.size(), 2U);  // goes past it
    EXPECT_FALSE(waiting->started());
    busy->cancel();
    EXPECT_EQ(wait_for(*waiting).result.slot, 0);
}

TEST(EngineJobs, ThatCanNeverRunAreRefusedWithTheReason) {
    EngineRun run(model_path(), engine_settings(2, 256));
    EXPECT_EQ(refusal(run, greedy({})), "the prompt is empty: there is no token to start from");
    EXPECT_EQ(refusal(run, greedy(prompt(300))),
              "the prompt has 300 tokens, the context 256: shorten it, or give a larger -c");
    EXPECT_EQ(refusal(run, greedy(prompt(256))),
              "the prompt has 256 tokens, the context 256: there is no room for an answer");
    EXPECT_EQ(refusal(run, greedy({3, 512})),
              "token 512 is not in the vocabulary; this model has 512 tokens, so 0 <= token < 512");
    EXPECT_THAT(refusal(run, greedy({-1})), HasSubstr("token -1 is not in the vocabulary"));
    JobRequest request = greedy(prompt(3));
    request.slot = 2;
    EXPECT_EQ(refusal(run, request),
              "slot 2 does not exist; there are 2, so 0 <= slot < 2, or -1 for any");
    request = greedy(prompt(3));
    request.variant = 1;
    EXPECT_EQ(refusal(run, request), "variant 1 does not exist; there are 1");
    request = greedy(prompt(3));
    request.generation.sampling.top_p = 2.0F;
    EXPECT_THAT(refusal(run, request), HasSubstr("top-p"));
    request = greedy(prompt(3));
    request.generation.sampling.constraint.text = "root ::= (";
    EXPECT_THAT(refusal(run, request), HasSubstr("grammar"));
    EXPECT_EQ(run.engine().counters().jobs_done, 0U);
}

TEST(EngineJobs, EndWhereTheContextIsFull) {
    EngineRun run(model_path(), engine_settings(2, 256));
    const Answer answer = run.run(greedy(prompt(250), -1));
    EXPECT_EQ(answer.result.reason, FinishReason::context);
    EXPECT_EQ(answer.tokens.size(), 6U);
    const Answer only_prompt = run.run(greedy(prompt(256), 0));
    EXPECT_EQ(only_prompt.result.reason, FinishReason::length);
    EXPECT_EQ(only_prompt.tokens.size(), 0U);
    EXPECT_EQ(only_prompt.result.timings.n_cached, 224U);
}

TEST(EngineJobs, WhoseGrammarLeavesNoTokenEndAlone) {
    EngineRun run(model_path(), engine_settings(3));
    JobRequest bad = greedy(prompt(20));
    bad.generation.sampling.constraint.text = "root ::= \"abc\"";  // and no end is allowed
    const JobRequest good = greedy(prompt(50), 30);
    const auto answers = run.run({good, bad, good});
    EXPECT_EQ(answers[1].text, "abc");
    EXPECT_THAT(answers[1].result.error, HasSubstr("no token is left to sample"));
    EXPECT_TRUE(answers[1].result.client_error);
    EXPECT_EQ(answers[0].tokens.size(), 30U);
    EXPECT_TRUE(same_answer(answers[0], answers[2]));
    EXPECT_EQ(run.run(good).result.timings.n_cached, 32U);
    EXPECT_TRUE(run.engine().drain(1min));
    EXPECT_EQ(run.engine().counters().jobs_failed, 1U);
    EXPECT_EQ(run.engine().counters().jobs_done, 3U);
}

/// A copy of a model in which one tensor's first value is no number.
TempFile broken(const std::string& path, const std::string& tensor) {
    std::ifstream in(path, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(in), {}};
    const gguf::File file = gguf::File::open(path);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::memcpy(bytes.data() + file.find_tensor(tensor)->offset, &nan, sizeof(nan));
    return {".gguf", bytes};
}

TEST(EngineJobs, OfAModelThatComputesNonsenseEndWithAnError) {
    const TempFile file = broken(model_path(GGML_TYPE_F32), "output_norm.weight");
    EngineRun run(file.path(), engine_settings(2));
    for (const Answer& answer : run.run({greedy(prompt(40, 2)), greedy(prompt(40, 3))})) {
        EXPECT_THAT(answer.result.error, HasSubstr("the model's computation has broken down"));
        EXPECT_FALSE(answer.result.client_error);
        EXPECT_EQ(answer.result.timings.n_cached, 0U);
    }
    EXPECT_EQ(run.run(greedy(prompt(40))).result.timings.n_cached, 0U);
}

TEST(EngineJobs, EndAtTheFirstStepPastTheirTimeOnceThereWasALineBreak) {
    EngineRun run(model_path(), roomy(1));
    JobRequest request = endless();
    request.time_limit = 1ms;
    request.generation.n_predict = 100;
    for (int32_t token = 0; token < n_vocab; ++token) {
        if (run.tokenizer().piece(token, true).find('\n') == std::string::npos) continue;
        request.generation.sampling.logit_bias.push_back({token, -100.0F});
    }
    ASSERT_FALSE(request.generation.sampling.logit_bias.empty());
    EXPECT_EQ(run.run(request).tokens.size(), 100U);
    for (LogitBias& bias : request.generation.sampling.logit_bias) bias.bias = 100.0F;
    request.generation.n_predict = -1;
    const Answer answer = run.run(request);
    EXPECT_EQ(answer.result.reason, FinishReason::length);
    EXPECT_LT(answer.tokens.size(), 8000U);
}

TEST(EngineDrain, LetsJobsEndAndTakesNoMore) {
    EngineRun run(model_path(), engine_settings(1));
    const auto first = submitted(run, greedy(prompt(30), 5));
    const auto second = submitted(run, greedy(prompt(30), 5));
    EXPECT_TRUE(run.engine().drain(1min));
    EXPECT_EQ(wait_for(*first).tokens.size(), 5U);
    EXPECT_EQ(wait_for(*second).tokens.size(), 5U);
    EXPECT_FALSE(accepted(run, {greedy(prompt(3))}));
    EXPECT_EQ(run.engine().counters().jobs_refused, 1U);
}

TEST(EngineDrain, GivesUpInTimeAndTheEnginesEndCancelsWhatRuns) {
    std::shared_ptr<Job> running;
    std::shared_ptr<Job> waiting;
    {
        EngineRun run(model_path(), engine_settings(1, 65536));
        running = submitted(run, endless());
        waiting = submitted(run, endless());
        EXPECT_FALSE(run.engine().drain(1ms));
    }
    EXPECT_EQ(wait_for(*running).result.reason, FinishReason::cancelled);
    EXPECT_EQ(wait_for(*waiting).result.reason, FinishReason::cancelled);
}

TEST(EngineCounters, AddUp) {
    EngineRun run(model_path(), engine_settings(2));
    run.run({greedy(prompt(100), 5), greedy(prompt(50, 2), 5)});
    run.run(greedy(prompt(100), 5));
    EXPECT_TRUE(run.engine().drain(1min));
    const EngineCounters counters = run.engine().counters();
    EXPECT_EQ(counters.prompt_tokens, 100U + 50U + 4U);
    EXPECT_EQ(counters.cached_tokens, 96U);
    EXPECT_EQ(counters.predicted_tokens, 15U);
    EXPECT_EQ(counters.busy_slots_sum, 12U);  // the first token of each comes of the prompt
    EXPECT_EQ(counters.jobs_done, 3U);
    EXPECT_EQ(counters.running, 0U);
    EXPECT_EQ(counters.waiting, 0U);
    EXPECT_GT(counters.prompt_seconds, 0.0);
    const auto slots = run.engine().slots();
    ASSERT_EQ(slots.size(), 2U);
    EXPECT_EQ(slots[0].n_cached, 104U);
    EXPECT_EQ(slots[1].n_cached, 54U);
}

}  // namespace
}  // namespace pleat::test
