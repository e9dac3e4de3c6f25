#include "plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/test_shapes.h"

namespace pleat {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

std::vector<int32_t> run(std::initializer_list<std::pair<int32_t, int32_t>> half_open) {
    std::vector<int32_t> layers;
    for (const auto& [begin, end] : half_open) {
        for (int32_t layer = begin; layer < end; ++layer) layers.push_back(layer);
    }
    return layers;
}

TEST(Identity, IsEveryLayerOnceInOrder) {
    const LayerPlan plan = resolve("", llama_shape({.n_layer = 4}));
    EXPECT_TRUE(plan.is_identity());
    EXPECT_THAT(layers_of(plan), ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(slots_of(plan), ElementsAre(0, 1, 2, 3));
    EXPECT_EQ(plan.canonical(), "0..3");
    EXPECT_TRUE(plan.warnings().empty());
    EXPECT_TRUE(plan.seams().empty());
    EXPECT_TRUE(plan.inserted_copies().empty());
}

TEST(Identity, HasManySpellings) {
    const ModelShape shape = llama_shape({.n_layer = 4});
    for (const char* spec : {"0,0", "0,4x1", "layers:0..3", "layers:..", "layers:0,1..[scale=1]"}) {
        EXPECT_TRUE(resolve(spec, shape).is_identity()) << spec;
    }
    for (const char* spec : {"0,1", "skip:1", "drop:1", "drop-ffn:1", "layers:3..0",
                             "layers:..[scale=0.5]", "layers:..[qk=0.5]"}) {
        EXPECT_FALSE(resolve(spec, shape).is_identity()) << spec;
    }
}

TEST(RepeatLayers, GiveEveryPassItsOwnSlotOfTheSameLayer) {
    const LayerPlan plan = resolve("2,4", llama_shape({.n_layer = 6}));
    EXPECT_THAT(layers_of(plan), ElementsAre(0, 1, 2, 3, 2, 3, 4, 5));
    EXPECT_THAT(slots_of(plan), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
    EXPECT_THAT(plan.slots(), ElementsAre(Slot{0, 0}, Slot{1, 1}, Slot{2, 2}, Slot{3, 3},
                                          Slot{2, 4}, Slot{3, 5}, Slot{4, 6}, Slot{5, 7}));
    EXPECT_THAT(plan.seams(), ElementsAre(Seam{.pass = 4, .from = 3, .to = 2}));
    EXPECT_THAT(plan.inserted_copies(), ElementsAre(InsertedCopy{.begin = 2, .end = 4, .pass = 4}));
}

// The blocks that RYS published for models of 64 layers, with the lengths it names.
TEST(RepeatLayers, AgreeWithThePublishedTable) {
    const ModelShape shape = llama_shape();
    const std::vector<std::pair<std::string, size_t>> table = {
        {"33,34", 65}, {"31,34", 67}, {"30,35", 69},       {"26,34", 72},
        {"24,35", 75}, {"29,34", 69}, {"43,45;28,34", 72}, {"39,45;24,35;9,20;43,46", 95}};
    for (const auto& [spec, n_pass] : table) EXPECT_EQ(resolve(spec, shape).size(), n_pass) << spec;

    EXPECT_THAT(layers_of(resolve("26,34", shape)),
                ElementsAreArray(run({{0, 34}, {26, 34}, {34, 64}})));
    EXPECT_THAT(layers_of(resolve("39,45;24,35;9,20;43,46", shape)),
                ElementsAreArray(run({{0, 20},
                                      {9, 20},
                                      {20, 35},
                                      {24, 35},
                                      {35, 45},
                                      {39, 45},
                                      {45, 46},
                                      {43, 46},
                                      {46, 64}})));
    EXPECT_EQ(resolve("43,45;28,34", shape), resolve("28,34;43,45", shape));
}

TEST(RepeatLayers, GoAfterTheLastOccurrenceOfTheirLastLayer) {
    const ModelShape shape = llama_shape({.n_layer = 8});
    EXPECT_EQ(resolve("2,7;2,7", shape), resolve("2,7x3", shape));
    EXPECT_EQ(resolve("2,7x3", shape).canonical(), "0..6,2..6,2..7");
    EXPECT_EQ(resolve("2,5;4,6", shape).canonical(), "0..4,2..5,4..7");
    EXPECT_EQ(resolve("4,6;2,5", shape).canonical(), "0..5,4,2..7");
    EXPECT_EQ(resolve("7,8", shape).canonical(), "0..7,7");
}

TEST(RepeatLayers, LeaveSkippedLayersOut) {
    const ModelShape shape = llama_shape({.n_layer = 8});
    EXPECT_EQ(resolve("2,6+skip:3..4", shape).canonical(), "0..2,5,2,5..7");
    EXPECT_EQ(resolve("skip:3,3..4,4+2,6", shape), resolve("2,6+skip:3..4", shape));
}

TEST(ExplicitPath, TakesRangesEitherWay) {
    const ModelShape shape = llama_shape({.n_layer = 6});
    EXPECT_THAT(layers_of(resolve("layers:..2,4..,3..1", shape)),
                ElementsAre(0, 1, 2, 4, 5, 3, 2, 1));
    EXPECT_EQ(resolve("layers:0,1,2,1,0,0", shape).canonical(), "0..2,1..0,0");
}

TEST(ExplicitPath, MarksChangeOnlyTheirPasses) {
    const LayerPlan plan =
        resolve("layers:0..3,2..3[-attn,scale=0.7],4..5", llama_shape({.n_layer = 6}));
    EXPECT_THAT(slots_of(plan), ElementsAre(0, 1, 2, 3, no_slot, no_slot, 4, 5));
    EXPECT_EQ(plan[4], (Pass{.layer = 2, .slot = no_slot, .attention = false, .scale = 0.7F}));
    EXPECT_EQ(plan[3], (Pass{.layer = 3, .slot = 3}));
    EXPECT_EQ(plan.canonical(), "0..3,2..3[-attn,scale=0.7],4..5");
}

TEST(Drops, HoldInEveryPassOfTheirLayer) {
    const ModelShape shape = llama_shape({.n_layer = 5});
    EXPECT_EQ(resolve("1,3+drop:2,2+drop-ffn:0..1", shape).canonical(),
              "0..1[-ffn],2[-attn],1[-ffn],2[-attn],3..4");
    EXPECT_EQ(resolve("layers:0..4,3[-ffn]+drop:3", shape).canonical(),
              "0..2,3[-attn],4,3[-attn,-ffn]");
}

TEST(Slots, ARecurrentPassHasItsOwnState) {
    const LayerPlan plan = resolve("1,4", hybrid_shape({.n_layer = 8}));
    EXPECT_THAT(slots_of(plan), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
    EXPECT_EQ(plan.slots()[4], (Slot{.layer = 1, .pass = 4}));
}

TEST(Slots, AConsumerReadsTheLatestEarlierPassOfItsOwner) {
    const ModelShape shape = shared_shape();  // 4 and 6 read 2; 5 and 7 read 3
    EXPECT_THAT(slots_of(resolve("", shape)), ElementsAre(0, 1, 2, 3, 2, 3, 2, 3));
    const LayerPlan twice = resolve("2,6", shape);
    EXPECT_THAT(layers_of(twice), ElementsAre(0, 1, 2, 3, 4, 5, 2, 3, 4, 5, 6, 7));
    EXPECT_THAT(slots_of(twice), ElementsAre(0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 4, 5));
    EXPECT_EQ(twice.slots().size(), 6U);
    const LayerPlan second_without = resolve("layers:0..5,2..3[-attn],4..7", shape);
    EXPECT_THAT(slots_of(second_without),
                ElementsAre(0, 1, 2, 3, 2, 3, no_slot, no_slot, 2, 3, 2, 3));
    EXPECT_THAT(slots_of(resolve("drop:5", shape)), ElementsAre(0, 1, 2, 3, 2, no_slot, 2, 3));
}

TEST(Copies, AreTheRunsOfLayersVisitedBefore) {
    const ModelShape shape = llama_shape({.n_layer = 8});
    EXPECT_THAT(resolve("2,4x3;6,7", shape).inserted_copies(),
                ElementsAre(InsertedCopy{2, 4, 4}, InsertedCopy{2, 4, 6}, InsertedCopy{6, 7, 11}));
    EXPECT_THAT(resolve("layers:0..7,5,5,1", shape).inserted_copies(),
                ElementsAre(InsertedCopy{5, 6, 8}, InsertedCopy{5, 6, 9}, InsertedCopy{1, 2, 10}));
    EXPECT_THAT(resolve("layers:0,2,1,2..4", shape).seams(),
                ElementsAre(Seam{1, 0, 2}, Seam{2, 2, 1}));
}

TEST(Hash, IsFnv1aOfTheCanonicalText) {
    // Of "0" and of "0..3", computed with a few lines of another language.
    EXPECT_EQ(resolve("", llama_shape({.n_layer = 1})).hash(), "af63ad4c86019caf");
    const ModelShape shape = llama_shape({.n_layer = 4});
    EXPECT_EQ(resolve("", shape).hash(), "bebc04f958834f1c");
    EXPECT_EQ(resolve("2,4", shape).hash(), resolve("layers:0..3,2..3", shape).hash());
    EXPECT_NE(resolve("", shape).hash(), resolve("2,4", shape).hash());
}

TEST(Warnings, NameRepeatedBoundaryLayers) {
    const ModelShape shape = llama_shape();
    EXPECT_THAT(resolve("26,34", shape).warnings(), ElementsAre());
    EXPECT_THAT(resolve("8,56", shape).warnings(), ElementsAre());
    EXPECT_THAT(resolve("7,57", shape).warnings(),
                ElementsAre("a repeat touches the first 8 layers (layer 7); boundary layers often "
                            "break models, which and how far depends on the model",
                            "a repeat touches the last 8 layers (layer 56); boundary layers often "
                            "break models, which and how far depends on the model"));
    EXPECT_THAT(resolve("layers:0..9,0..1,10..", llama_shape({.n_layer = 16})).warnings(),
                ElementsAre("a repeat touches the first 3 layers (layers 0..1); boundary layers "
                            "often break models, which and how far depends on the model"));
    EXPECT_THAT(resolve("0,8x1", shape).warnings(), ElementsAre());
}

TEST(Warnings, NamePathsThatLeaveMostOut) {
    EXPECT_THAT(resolve("layers:26,34", llama_shape()).warnings(),
                ElementsAre("only 2 of 64 layers are run; --layers is the whole path, was "
                            "--repeat-layers meant?",
                            "the path leaves out the last layer, 63"));
    EXPECT_THAT(resolve("skip:1..5", llama_shape({.n_layer = 9})).warnings(),
                ElementsAre("only 4 of 9 layers are run"));
    EXPECT_THAT(resolve("skip:1..4", llama_shape({.n_layer = 8})).warnings(), ElementsAre());
    EXPECT_THAT(resolve("skip:7", llama_shape({.n_layer = 8})).warnings(),
                ElementsAre("the path leaves out the last layer, 7"));
}

TEST(Warnings, NameWhatHurtsHybrids) {
    const ModelShape shape = hybrid_shape();
    EXPECT_THAT(resolve("skip:4", shape).warnings(), ElementsAre("recurrent layer 4 is skipped"));
    EXPECT_THAT(resolve("skip:4..6", shape).warnings(),
                ElementsAre("recurrent layers 4..6 are skipped"));
    EXPECT_THAT(resolve("drop:7,11", shape).warnings(),
                ElementsAre("attention is dropped in a hybrid model (layers 7,11); judge it by "
                            "retrieval, not by perplexity alone"));
    EXPECT_THAT(resolve("drop:5", llama_shape({.n_layer = 16})).warnings(), ElementsAre());
}

}  // namespace
}  // namespace pleat
