#include "lab/workload.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"

namespace pleat {
namespace {

Workload two_texts() {
    std::vector<int32_t> tokens(64);
    std::iota(tokens.begin(), tokens.end(), 0);
    Workload workload;
    workload.add_text("a.txt", tokens, 8, -1);
    workload.add_text("b.txt", tokens, 16, -1);
    return workload;
}

std::vector<std::string> names(const Workload& workload) {
    std::vector<std::string> list;
    for (const Measure& measure : workload.measures()) list.push_back(measure.name);
    return list;
}

std::vector<std::string> wanted(const std::vector<std::string>& measures) {
    Workload workload = two_texts();
    workload.want_measures(measures);
    return names(workload);
}

TEST(Workload, GivesTheMeasuresThatAreWanted) {
    using Names = std::vector<std::string>;
    EXPECT_EQ(wanted({}), (Names{"nll:a.txt", "kl:a.txt", "top1:a.txt", "nll:b.txt", "kl:b.txt",
                                 "top1:b.txt"}));
    EXPECT_EQ(wanted({"top1", "nll"}),
              (Names{"nll:a.txt", "top1:a.txt", "nll:b.txt", "top1:b.txt"}));
    EXPECT_EQ(wanted({"perplexity"}), wanted({"ppl"}));
    EXPECT_EQ(wanted({"ppl"}), wanted({"nll"}));
    EXPECT_EQ(wanted({"kl:a.txt", "agreement"}), (Names{"kl:a.txt", "top1:a.txt", "top1:b.txt"}));
}

TEST(Workload, KnowsTheColumnOfAWantedMeasure) {
    Workload workload = two_texts();
    workload.want_measures({"kl:a.txt", "top1"});
    using Columns = std::vector<std::optional<size_t>>;
    EXPECT_EQ(workload.columns(0), (Columns{std::nullopt, 0, 1}));
    EXPECT_EQ(workload.columns(1), (Columns{std::nullopt, std::nullopt, 2}));
}

TEST(Workload, LeavesOutWhatGivesNoWantedMeasure) {
    Workload workload = two_texts();
    workload.want_measures({"nll:b.txt"});
    ASSERT_EQ(workload.sequences().size(), 4U);
    for (const ScoredSequence& it : workload.sequences()) EXPECT_EQ(it.source, 1U);
}

TEST(Workload, NamesWhatItHasWhenAMeasureIsNone) {
    Workload workload = two_texts();
    try {
        workload.want_measures({"kl", "exact"});
        FAIL() << "took a measure of probes";
    } catch (const Error& e) {
        EXPECT_STREQ(e.what(),
                     "there is no measure exact; these texts and probes give nll:a.txt, kl:a.txt, "
                     "top1:a.txt, nll:b.txt, kl:b.txt, top1:b.txt");
    }
    EXPECT_EQ(workload.measures().size(), 6U);
}

}  // namespace
}  // namespace pleat
