#include "engine/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace pleat {
namespace {

using testing::ElementsAre;

/// A batch of (sequence) entries; positions follow each other, every token wants output.
Batch batch_of(const std::vector<int32_t>& sequences) {
    Batch batch;
    std::vector<int32_t> next(8);
    for (const int32_t s : sequences) {
        batch.push_back({.token = static_cast<int32_t>(batch.size()),
                         .position = next[static_cast<size_t>(s)]++,
                         .sequence = s,
                         .output = true});
    }
    return batch;
}

TEST(SplitUbatches, OneStreamIsCutIntoRuns) {
    const auto ubatches = split_ubatches(batch_of({0, 0, 0, 1, 1}), 2, UbatchSplit::runs);
    ASSERT_EQ(ubatches.size(), 3U);
    EXPECT_THAT(ubatches[1].tokens, ElementsAre(2, 3));
    EXPECT_THAT(ubatches[1].sequences, ElementsAre(0, 1));
    EXPECT_THAT(ubatches[2].batch_rows, ElementsAre(4));
    EXPECT_EQ(ubatches[1].n_streams, 1U);
}

TEST(SplitUbatches, SeveralStreamsGiveEqualNumbersOfTokens) {
    const auto ubatches =
        split_ubatches(batch_of({0, 0, 0, 1, 1}), 8, UbatchSplit::equal_consecutive);
    ASSERT_EQ(ubatches.size(), 2U);
    EXPECT_THAT(ubatches[0].tokens, ElementsAre(0, 1, 3, 4));
    EXPECT_EQ(ubatches[0].n_streams, 2U);
    EXPECT_THAT(ubatches[1].tokens, ElementsAre(2));
    EXPECT_EQ(ubatches[1].n_streams, 1U);
}

TEST(SplitUbatches, StreamsOfOneUbatchFollowEachOther) {
    const auto ubatches = split_ubatches(batch_of({2, 0, 1}), 8, UbatchSplit::equal_consecutive);
    ASSERT_EQ(ubatches.size(), 2U);
    EXPECT_THAT(ubatches[0].sequences, ElementsAre(2));
    EXPECT_EQ(ubatches[0].first_stream, 2U);
    EXPECT_THAT(ubatches[1].sequences, ElementsAre(0, 1));
    EXPECT_EQ(ubatches[1].first_stream, 0U);
}

TEST(SplitUbatches, StreamsOfTheirOwnMayLieAnywhere) {
    const auto ubatches = split_ubatches(batch_of({5, 0, 3}), 8, UbatchSplit::equal_streams);
    ASSERT_EQ(ubatches.size(), 1U);
    EXPECT_THAT(ubatches[0].sequences, ElementsAre(5, 0, 3));
    EXPECT_EQ(ubatches[0].n_streams, 3U);
    EXPECT_EQ(ubatches[0].stream(0), 5U);
    EXPECT_EQ(ubatches[0].stream(2), 3U);
}

TEST(SplitUbatches, WithoutStreamsTakesSequencesOfAnyIdsTogether) {
    const auto ubatches = split_ubatches(batch_of({2, 0, 2, 0, 0}), 8, UbatchSplit::equal);
    ASSERT_EQ(ubatches.size(), 2U);
    EXPECT_THAT(ubatches[0].sequences, ElementsAre(2, 2, 0, 0));
    EXPECT_EQ(ubatches[0].n_seqs, 2U);
    EXPECT_EQ(ubatches[0].sequence(0), 2);
    EXPECT_EQ(ubatches[0].sequence(1), 0);
    EXPECT_EQ(ubatches[0].n_streams, 1U);
    EXPECT_THAT(ubatches[1].sequences, ElementsAre(0));
}

TEST(SplitUbatches, InterleavedTokensAreGatheredBySequence) {
    const auto ubatches = split_ubatches(batch_of({0, 1, 0, 1}), 8, UbatchSplit::equal_consecutive);
    ASSERT_EQ(ubatches.size(), 1U);
    EXPECT_THAT(ubatches[0].sequences, ElementsAre(0, 0, 1, 1));
    EXPECT_THAT(ubatches[0].batch_rows, ElementsAre(0, 2, 1, 3));
    EXPECT_THAT(ubatches[0].output_rows, ElementsAre(0, 1, 2, 3));
}

TEST(SplitUbatches, OneSequenceMoreThanTheSizeComesAlong) {
    // As in stock, whose check comes a sequence late.
    const auto ubatches = split_ubatches(batch_of({0, 1, 2, 3, 4}), 2, UbatchSplit::equal);
    ASSERT_EQ(ubatches.size(), 2U);
    EXPECT_THAT(ubatches[0].sequences, ElementsAre(0, 1, 2));
    EXPECT_THAT(ubatches[1].sequences, ElementsAre(3, 4));
}

TEST(SplitUbatches, NoUbatchExceedsItsSize) {
    for (const Ubatch& u : split_ubatches(batch_of({0, 1, 2, 0, 1, 2, 0, 1, 2, 0}), 4,
                                          UbatchSplit::equal_consecutive)) {
        EXPECT_LE(u.n_tokens(), 4U);
        EXPECT_EQ(u.n_tokens() % u.n_streams, 0U);
    }
}

}  // namespace
}  // namespace pleat
