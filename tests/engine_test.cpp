#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/engine_run.h"
#include "support/random_model.h"
#include "support/random_models.h"
#include "support/random_tokens.h"

// Answers do not depend on what else the engine does: other requests in flight, what a slot held
// before, other variants.
namespace pleat::test {
namespace {

MATCHER_P(SameAs, expected, "") { return same_answer(arg, expected); }

const std::string& file_of(RandomModel model, ggml_type type) {
    model.tokenizer = true;
    return make_model(model, type).path();
}

/// Prompts from one token to several chunks, two of them past 512 cells; greedy and drawn.
std::vector<JobRequest> mixed_requests(int n_vocab) {
    std::vector<JobRequest> requests;
    for (const size_t n : {7U, 100U, 1U, 520U, 33U, 64U, 250U, 505U}) {
        const auto seed = static_cast<uint32_t>(requests.size());
        requests.push_back(greedy(random_tokens(seed + 1, n, n_vocab), 12));
        if (seed % 4 != 3) continue;
        requests.back().generation.sampling.temp = 1.0F;
        requests.back().generation.sampling.seed = seed;
    }
    return requests;
}

std::vector<Answer> one_at_a_time(const std::string& path, const std::vector<JobRequest>& requests,
                                  EngineSettings settings) {
    settings.context.cache.n_seq = 1;
    std::vector<Answer> answers;
    for (const JobRequest& request : requests) {
        answers.push_back(EngineRun(path, settings).run(request));
    }
    return answers;
}

struct Case {
    NamedModel model;
    ggml_type type;
};
void PrintTo(const Case& c, std::ostream* out) {
    *out << c.model.name << '_' << ggml_type_name(c.type);
}

class Concurrent : public testing::TestWithParam<Case> {};

TEST_P(Concurrent, JobsGiveWhatEachGivesAlone) {
    const std::string& path = file_of(GetParam().model.model, GetParam().type);
    const auto requests = mixed_requests(GetParam().model.model.n_vocab);
    const auto expected = one_at_a_time(path, requests, engine_settings(1));
    const auto together = EngineRun(path, engine_settings(8)).run(requests);
    for (size_t i = 0; i < requests.size(); ++i) {
        EXPECT_EQ(expected[i].tokens.size(), 12U);
        EXPECT_THAT(together[i], SameAs(expected[i])) << "job " << i;
    }
}

std::vector<Case> cases() {
    std::vector<Case> cases;
    std::vector<NamedModel> models = architecture_models();
    models.insert(models.begin(), {"llama", RandomModel{}});
    for (const NamedModel& model : models) {
        for (const ggml_type type :
             {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0}) {
            cases.push_back({model, type});
        }
    }
    return cases;
}

INSTANTIATE_TEST_SUITE_P(All, Concurrent, testing::ValuesIn(cases()), [](const auto& one) {
    return fmt::format("{}_{}", one.param.model.name, ggml_type_name(one.param.type));
});

}  // namespace
}  // namespace pleat::test
