#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "arch/registry.h"
#include "engine/context.h"
#include "generate/generate.h"
#include "generate/prompt.h"
#include "model/backend.h"
#include "plan/plan.h"
#include "plan/spec.h"
#include "text/tokenizer.h"

// A trained model still finds what it is asked for when a middle layer loses its attention or runs
// twice. Equal bits prove that a plan is computed as it says (plan_bits_test.cpp); this holds that
// such a plan can be worth running.
//
// The plans are not the author's guess: of all middle drops and short middle repeats, measured on
// tests/data/needles.jsonl, they are among those that find as many needles as the identity plan
// (docs/retrieval.md has the table). The tests run on other texts, needles-check.jsonl, because the
// best of fifty plans on the texts it was chosen on may be luck.
namespace pleat {
namespace {

/// A code that one sentence of the text names, and the question for it.
struct Needle {
    std::string prompt;
    std::string answer;
};

/// Four texts for each of ten cases: 256 and 440 tokens, the needle after 10, 30, 50, 70 and 90 %
/// of the text. Made by models/training/corpus.py.
std::vector<Needle> read_needles(const std::string& name) {
    std::vector<Needle> read;
    std::ifstream file(fmt::format("{}/{}", PLEAT_TEST_DATA, name));
    for (std::string line; std::getline(file, line);) {
        const auto item = nlohmann::json::parse(line);
        read.push_back({.prompt = item.at("prompt"), .answer = item.at("answer")});
    }
    return read;
}

struct TrainedModel {
    explicit TrainedModel(const std::string& name)
        : path(fmt::format("{}/pleat-demo-{}-q4_0.gguf", PLEAT_MODELS_DIR, name)),
          tokenizer(Tokenizer::open(path)) {
        load_backends(PLEAT_BACKEND_DIR);
        model = open_model(path);
    }

    std::string path;
    Tokenizer tokenizer;
    std::shared_ptr<Model> model;
};

/// The likeliest text after the prompt is the answer, and then something else than a digit.
bool finds(Context& context, const Tokenizer& tokenizer, const Needle& needle) {
    context.clear();
    GenerationParams params{.n_predict = static_cast<int32_t>(needle.answer.size()) + 1};
    params.sampling.temp = 0.0F;
    const std::string text =
        generate(context, tokenizer, prompt_tokens(tokenizer, needle.prompt), params).text;
    return text.starts_with(needle.answer) &&
           (text.size() == needle.answer.size() ||
            std::isalnum(static_cast<unsigned char>(text[needle.answer.size()])) == 0);
}

/// How many needles the model finds under a plan.
int count_found(const TrainedModel& trained, std::string_view spec,
                const std::vector<Needle>& needles) {
    ContextSettings settings;
    settings.cache.n_ctx = 512;
    Context context(trained.model, LayerPlan::resolve(parse_spec(spec), trained.model->shape()),
                    settings);
    int found = 0;
    for (const Needle& needle : needles) {
        if (finds(context, trained.tokenizer, needle)) ++found;
    }
    return found;
}

struct Case {
    std::string name;  ///< of the test
    std::string model;
    std::string drop;
    std::string repeat;
    int at_least = 0;  ///< needles that make the comparison mean something
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class Retrieval : public testing::TestWithParam<Case> {};

TEST_P(Retrieval, FindsAsManyNeedlesUnderAMiddleDropAndAMiddleRepeat) {
    const Case& c = GetParam();
    const std::vector<Needle> needles = read_needles("needles-check.jsonl");
    ASSERT_EQ(needles.size(), 40U);
    const TrainedModel trained(c.model);
    const int identity = count_found(trained, "", needles);
    EXPECT_GE(identity, c.at_least);
    EXPECT_GE(count_found(trained, c.drop, needles), identity) << c.drop;
    EXPECT_GE(count_found(trained, c.repeat, needles), identity) << c.repeat;
}

INSTANTIATE_TEST_SUITE_P(
    Models, Retrieval,
    testing::Values(
        // Of the drops that lost nothing (3, 10, 11) 10 is nearest to the middle, next to layer 9,
        // without whose attention nothing is found. Of the repeats that lost nothing (4; 12; 12 and
        // 13) 4 is farthest from the ends.
        Case{"llama", "llama-16L", "drop:10", "4,5", 30},
        // Layer 7 of 12, a window layer, is the only one whose attention could go without loss. Of
        // the repeats that lost nothing (6; 9; 4 to 6) 6 is the shortest in the middle. The model
        // finds less than half of the needles.
        Case{"gemma3", "gemma3-12L", "drop:7", "6,7", 10}
        // The hybrid finds nothing under any plan, the identity included: it has not learned to.
        ),
    [](const auto& param) { return param.param.name; });

/// Of each middle layer its attention dropped, and each block of one to three of them run twice.
/// Two layers at each end are left alone: models seldom bear a change there.
std::vector<std::string> middle_plans(const ModelShape& shape) {
    std::vector<std::string> specs;
    for (int32_t i = 2; i < shape.n_layer - 2; ++i) {
        if (droppable(shape.layers[static_cast<size_t>(i)].role)) {
            specs.push_back(fmt::format("drop:{}", i));
        }
    }
    for (int32_t size = 1; size <= 3; ++size) {
        for (int32_t i = 2; i + size <= shape.n_layer - 2; ++i) {
            specs.push_back(fmt::format("{},{}", i, i + size));
        }
    }
    return specs;
}

/// Not a test: prints the table of docs/retrieval.md, in some minutes.
TEST(RetrievalTable, DISABLED_OfMiddlePlans) {
    const std::vector<Needle> needles = read_needles("needles.jsonl");
    for (const char* name : {"llama-16L", "gemma3-12L", "qwen35-12L"}) {
        const TrainedModel trained(name);
        fmt::print("{} of {} needles, identity: {}\n", name, needles.size(),
                   count_found(trained, "", needles));
        for (const std::string& spec : middle_plans(trained.model->shape())) {
            fmt::print("{} {}: {}\n", name, spec, count_found(trained, spec, needles));
            std::fflush(stdout);
        }
    }
}

}  // namespace
}  // namespace pleat
