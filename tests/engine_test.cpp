#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "support/engine_run.h"
#include "support/random_model.h"
#include "support/random_models.h"
#include "support/random_tokens.h"

// An answer does not depend on what else the engine does: other requests in flight, what a slot
// held before, other variants. In tokens, and in every bit of their probabilities.
namespace pleat::test {
namespace {

using testing::Each;
using testing::Field;

MATCHER_P(SameAs, expected, "") { return same_answer(arg, expected); }

struct Case {
    NamedModel model;
    ggml_type type;

    const std::string& path() const {
        RandomModel with_text = model.model;
        with_text.tokenizer = true;
        with_text.n_vocab = std::max(with_text.n_vocab, 260);
        return make_model(with_text, type).path();
    }
    std::vector<int32_t> prompt(uint32_t seed, size_t n) const {
        return random_tokens(seed, n, model.model.n_vocab);
    }
};
void PrintTo(const Case& c, std::ostream* out) {
    *out << c.model.name << '_' << ggml_type_name(c.type);
}
const auto case_name = [](const auto& one) {
    return fmt::format("{}_{}", one.param.model.name, ggml_type_name(one.param.type));
};

/// From one token to several chunks and past 512 cells; greedy ones and drawn ones.
std::vector<JobRequest> mixed_requests(const Case& c, size_t n_jobs) {
    std::vector<JobRequest> requests;
    for (const size_t n : {7U, 100U, 1U, 520U, 33U, 64U, 40U, 20U}) {
        if (requests.size() == n_jobs) break;
        const auto seed = static_cast<uint32_t>(requests.size());
        // The others still generate when the longest one begins to.
        requests.push_back(greedy(c.prompt(seed + 1, n), n > 500 ? 8 : 24));
        if (seed % 4 != 3) continue;
        requests.back().generation.sampling.temp = 1.0F;
        requests.back().generation.sampling.seed = seed;
    }
    return requests;
}

Answer alone(const std::string& path, const JobRequest& request, EngineSettings settings,
             const std::vector<std::string>& plans = {""}) {
    settings.context.cache.n_seq = 1;
    return EngineRun(path, settings, plans).run(request);
}

void expect_same_together(const Case& c, const EngineSettings& settings, size_t n_jobs = 8) {
    const std::string& path = c.path();
    const auto requests = mixed_requests(c, n_jobs);
    const auto together = EngineRun(path, settings).run(requests);
    for (size_t i = 0; i < requests.size(); ++i) {
        EXPECT_EQ(together[i].tokens.size(), i == 3 ? 8U : 24U);
        EXPECT_THAT(together[i], SameAs(alone(path, requests[i], settings))) << "job " << i;
    }
}

class Concurrent : public testing::TestWithParam<Case> {};

TEST_P(Concurrent, JobsGiveWhatEachGivesAlone) {
    expect_same_together(GetParam(), engine_settings(8, 1024, 64));
}

constexpr ggml_type exact_types[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0};

/// The first form of every architecture in all types, the others in one.
std::vector<Case> all_models() {
    std::vector<NamedModel> models = architecture_models();
    models.insert(models.begin(), {"llama", RandomModel{}});
    std::vector<Case> cases;
    std::string last;
    for (size_t i = 0; i < models.size(); ++i) {
        const bool first = models[i].model.architecture != last;
        last = models[i].model.architecture;
        for (size_t t = 0; t < 4; ++t) {
            if (first || t == i % 4) cases.push_back({models[i], exact_types[t]});
        }
    }
    return cases;
}
INSTANTIATE_TEST_SUITE_P(All, Concurrent, testing::ValuesIn(all_models()), case_name);

TEST(ConcurrentWithThreads, JobsGiveWhatEachGivesAlone) {
    // A kernel shares the cells of one long sequence out among threads.
    EngineSettings settings = engine_settings(8, 1024, 64);
    settings.context.n_threads = 2;
    settings.context.n_threads_batch = 2;
    expect_same_together({{"llama", RandomModel{}}, GGML_TYPE_F16}, settings, 4);
    settings.context.n_threads_batch = 1;
    expect_same_together({{"llama", RandomModel{}}, GGML_TYPE_F16}, settings, 4);
}

TEST(ConcurrentWithoutFlashAttention, JobsGiveWhatEachGivesAlone) {
    EngineSettings settings = engine_settings(8, 1024, 64);
    settings.context.flash_attention = FlashAttention::off;
    expect_same_together({{"llama", RandomModel{}}, GGML_TYPE_Q8_0}, settings);
}

RandomModel wide(RandomModel model) {
    model.n_embd = 256;
    model.n_ff = 512;
    return model;
}

/// Whose kernels round differently with the number of rows: in rows of 256 values.
std::vector<Case> k_quants() {
    std::vector<Case> cases;
    const auto& models = architecture_models();
    for (const char* name : {"qwen3moe", "qwen35"}) {
        const auto found = std::ranges::find(models, std::string(name), &NamedModel::name);
        cases.push_back({{name, wide(found->model)}, GGML_TYPE_Q4_K});
    }
    for (const ggml_type type : {GGML_TYPE_Q4_K, GGML_TYPE_Q5_K, GGML_TYPE_Q6_K}) {
        cases.push_back({{"llama", RandomModel{}}, type});
    }
    return cases;
}
class Deterministic : public testing::TestWithParam<Case> {};

TEST_P(Deterministic, JobsGiveWhatEachGivesAlone) {
    EngineSettings settings = engine_settings(8, 1024, 64);
    settings.deterministic = true;
    expect_same_together(GetParam(), settings);
}
INSTANTIATE_TEST_SUITE_P(KQuants, Deterministic, testing::ValuesIn(k_quants()), case_name);

TEST(Variants, GiveWhatEachGivesAlone) {
    const Case c{{"llama", RandomModel{}}, GGML_TYPE_Q4_0};
    const std::vector<std::string> plans{"", "1,3", "drop:2"};
    std::vector<JobRequest> requests;
    for (uint32_t i = 0; i < 9; ++i) {
        requests.push_back(greedy(c.prompt(i / 3, 20 + 30 * i), 10));
        requests.back().variant = i % 3;
    }
    EngineRun together(c.path(), engine_settings(2), plans);
    const auto answers = together.run(requests);
    for (size_t i = 0; i < requests.size(); ++i) {
        JobRequest request = requests[i];
        request.variant = 0;
        const auto expected =
            alone(c.path(), request, engine_settings(1), {plans[requests[i].variant]});
        EXPECT_THAT(answers[i], SameAs(expected)) << "job " << i;
    }
    EXPECT_THAT(answers[0], testing::Not(SameAs(answers[1])));
}

std::vector<Case> one_of_each_kind() {
    std::vector<Case> cases{{{"llama", RandomModel{}}, GGML_TYPE_F16}};
    for (const NamedModel& model : architecture_models()) {
        for (const char* name :
             {"gemma3", "gemma4", "gemma4_shared_kv", "qwen35", "qwen35_fused", "qwen3moe"}) {
            if (model.name == name) cases.push_back({model, GGML_TYPE_Q4_0});
        }
    }
    return cases;
}

/// One slot, so that every job meets what the one before left; chunks of 32 tokens.
class PrefixReuse : public testing::TestWithParam<Case> {
  protected:
    explicit PrefixReuse(uint32_t n_slots = 1) : settings_(engine_settings(n_slots)) {}

    Answer run(const std::vector<int32_t>& prompt, int32_t n_predict = 10) {
        const JobRequest request = greedy(prompt, n_predict);
        const Answer answer = engine_.run(request);
        EXPECT_THAT(answer, SameAs(alone(GetParam().path(), request, settings_)));
        return answer;
    }
    size_t n_cached(const std::vector<int32_t>& prompt, int32_t n_predict = 10) {
        return run(prompt, n_predict).result.timings.n_cached;
    }
    bool recurrent() const { return GetParam().model.model.architecture == "qwen35"; }
    bool has_window() const { return GetParam().model.model.n_swa > 0; }

    EngineSettings settings_;
    EngineRun engine_{GetParam().path(), settings_};
};

std::vector<int32_t> joined(std::vector<int32_t> a, const std::vector<int32_t>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}
std::vector<int32_t> first(std::vector<int32_t> tokens, size_t n) {
    tokens.resize(n);
    return tokens;
}

TEST_P(PrefixReuse, OfTheSamePromptTakesAllWholeChunksButTheLastToken) {
    const auto prompt = GetParam().prompt(1, 200);
    EXPECT_EQ(n_cached(prompt), 0U);
    EXPECT_EQ(n_cached(prompt), 192U);
    EXPECT_EQ(n_cached(first(prompt, 192)), 160U);
    EXPECT_EQ(n_cached(first(prompt, 193)), 192U);
}

TEST_P(PrefixReuse, OfAConversationRunsWhatWasGeneratedAgain) {
    auto prompt = GetParam().prompt(1, 70);
    size_t cached = 0;
    for (uint32_t turn = 2; turn < 5; ++turn) {
        const Answer answer = run(prompt, 40);
        EXPECT_EQ(answer.result.timings.n_cached, cached);
        cached = prompt.size() / 32 * 32;
        prompt = joined(joined(prompt, answer.ids()), GetParam().prompt(turn, 30));
    }
}

TEST_P(PrefixReuse, OfAPromptThatDivergesOrIsShorterEndsBeforeThat) {
    const auto prompt = GetParam().prompt(1, 200);
    run(prompt);
    // Snapshots of four of six chunks' ends: 64, 128, 160, 192.
    EXPECT_EQ(n_cached(joined(first(prompt, 100), GetParam().prompt(2, 60))),
              recurrent() ? 64U : 96U);
    EXPECT_EQ(n_cached(first(prompt, 70)), 64U);
    EXPECT_EQ(n_cached(first(prompt, 20)), 0U);
    EXPECT_EQ(n_cached(GetParam().prompt(3, 90)), 0U);
}

TEST_P(PrefixReuse, EndsWhereAWindowCacheHasForgotten) {
    // A window of 16 and chunks of 32 make 256 cells.
    const auto prompt = GetParam().prompt(1, 450);
    run(prompt);
    EXPECT_EQ(n_cached(prompt, 30), 448U);
    EXPECT_EQ(n_cached(joined(first(prompt, 300), GetParam().prompt(2, 100)), 30), 288U);
    EXPECT_EQ(n_cached(joined(first(prompt, 290), GetParam().prompt(3, 50)), 30), 288U);
    const size_t far = n_cached(joined(first(prompt, 100), GetParam().prompt(4, 20)));
    EXPECT_EQ(far, has_window() || recurrent() ? 0U : 96U);
}

TEST_P(PrefixReuse, IsLeftOutWhenAskedTo) {
    JobRequest request = greedy(GetParam().prompt(1, 100));
    run(request.prompt);
    request.cache_prompt = false;
    const Answer answer = engine_.run(request);
    EXPECT_EQ(answer.result.timings.n_cached, 0U);
    EXPECT_THAT(answer, SameAs(alone(GetParam().path(), request, settings_)));
    EXPECT_EQ(n_cached(request.prompt), 96U);
}

TEST_P(PrefixReuse, TakesWhatAnEmbeddingJobComputed) {
    JobRequest embedding;
    embedding.kind = JobRequest::Kind::embedding;
    embedding.prompt = GetParam().prompt(1, 100);
    engine_.run(embedding);
    EXPECT_EQ(n_cached(embedding.prompt), 96U);
    EXPECT_EQ(engine_.run(embedding).result.timings.n_cached, 0U);
}

/// The same for slots that take over what others have.
class SharedPrefix : public PrefixReuse {
  protected:
    SharedPrefix() : PrefixReuse(4) {}

    std::vector<Answer> run_together(const std::vector<JobRequest>& requests) {
        const auto answers = engine_.run(requests);
        for (size_t i = 0; i < requests.size(); ++i) {
            EXPECT_THAT(answers[i], SameAs(alone(GetParam().path(), requests[i], settings_)))
                << "job " << i;
        }
        return answers;
    }
};

TEST_P(SharedPrefix, IsComputedOnceForJobsThatBeginTogether) {
    const auto prompt = GetParam().prompt(1, 100);
    std::vector<JobRequest> requests;
    for (uint32_t i = 0; i < 4; ++i) {
        requests.push_back(greedy(prompt, 10));
        requests.back().generation.sampling.temp = 1.0F;
        requests.back().generation.sampling.seed = i;
    }
    requests.push_back(greedy(joined(first(prompt, 70), GetParam().prompt(2, 60)), 10));
    const auto answers = run_together(requests);
    for (size_t i = 1; i < 4; ++i) EXPECT_EQ(answers[i].result.timings.n_cached, 96U);
    EXPECT_EQ(answers[4].result.timings.n_cached, 64U);
    EXPECT_TRUE(engine_.engine().drain(std::chrono::minutes(1)));
    EXPECT_EQ(engine_.engine().counters().prompt_tokens, 100U + 3 * 4 + 66);
}

TEST_P(SharedPrefix, IsTakenOverWhereAnotherSlotKeepsMore) {
    const auto prompt = GetParam().prompt(1, 200);
    const auto other = joined(first(prompt, 100), GetParam().prompt(2, 60));
    run_together({greedy(prompt)});
    const Answer shared = run_together({greedy(other)}).front();
    EXPECT_EQ(shared.result.slot, 1);
    EXPECT_EQ(shared.result.timings.n_cached, recurrent() ? 64U : 96U);
    const Answer again = run_together({greedy(prompt)}).front();
    EXPECT_EQ(again.result.slot, 0);
    EXPECT_EQ(again.result.timings.n_cached, 192U);
}

INSTANTIATE_TEST_SUITE_P(Kinds, SharedPrefix, testing::ValuesIn(one_of_each_kind()), case_name);

INSTANTIATE_TEST_SUITE_P(Kinds, PrefixReuse, testing::ValuesIn(one_of_each_kind()), case_name);

}  // namespace
}  // namespace pleat::test
