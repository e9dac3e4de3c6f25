#include "lab/trials.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"

namespace pleat {
namespace {

using testing::HasSubstr;

/// Texts of so many chunks of 8 tokens.
Workload texts(const std::vector<size_t>& n_chunks) {
    Workload workload;
    for (size_t i = 0; i < n_chunks.size(); ++i) {
        const std::vector<int32_t> tokens(std::max<size_t>(2, n_chunks[i]) * 8, 1);
        workload.add_text(fmt::format("text{}", i), tokens, 8, -1, n_chunks[i]);
    }
    return workload;
}

std::set<size_t> sources_of(const Workload& workload, const std::vector<size_t>& part) {
    std::set<size_t> sources;
    for (const size_t i : part) sources.insert(workload.sequences()[i].source);
    return sources;
}

TEST(SplitWorkload, GivesEveryTextToBothPartsWhateverTheSeed) {
    const Workload workload = texts({2, 3, 40});
    for (uint64_t seed = 0; seed < 50; ++seed) {
        SCOPED_TRACE(seed);
        const Split split = split_workload(workload, 0.5, seed);
        EXPECT_EQ(sources_of(workload, split.selection), (std::set<size_t>{0, 1, 2}));
        EXPECT_EQ(sources_of(workload, split.validation), (std::set<size_t>{0, 1, 2}));
        std::vector<size_t> all = split.selection;
        all.insert(all.end(), split.validation.begin(), split.validation.end());
        std::ranges::sort(all);
        ASSERT_EQ(all.size(), 45U);
        for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], i);
    }
}

TEST(SplitWorkload, MovesNothingWhereTheHashServesAll) {
    const Workload workload = texts({40});
    Split by_hash = split_items(workload.ids(), 0.5, 3);
    Split split = split_workload(workload, 0.5, 3);
    EXPECT_EQ(split.validation, by_hash.validation);
    std::ranges::sort(split.selection);
    EXPECT_EQ(split.selection, by_hash.selection);
}

TEST(SplitWorkload, OrdersTheSelectionBySeedAndNotByPlaceInTheText) {
    const Workload workload = texts({60});
    const Split split = split_workload(workload, 0.0, 1);
    EXPECT_TRUE(split.validation.empty());
    EXPECT_FALSE(std::ranges::is_sorted(split.selection));
    EXPECT_EQ(split.selection, split_workload(workload, 0.0, 1).selection);
    EXPECT_NE(split.selection, split_workload(workload, 0.0, 2).selection);
}

TEST(SplitWorkload, RefusesWhatCannotBeBothChosenOnAndChecked) {
    const Workload workload = texts({1, 8});
    try {
        split_workload(workload, 0.5, 1);
        FAIL() << "one chunk was split";
    } catch (const Error& e) {
        EXPECT_THAT(e.what(), HasSubstr("text0 has one item"));
        EXPECT_THAT(e.what(), HasSubstr("--validation 0"));
    }
    EXPECT_EQ(split_workload(workload, 0.0, 1).selection.size(), 9U);
}

}  // namespace
}  // namespace pleat
