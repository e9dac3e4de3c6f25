#include "lab/plan_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "plan/test_shapes.h"

namespace pleat {
namespace {

std::vector<LayerPlan> plans_of(const std::vector<std::string>& specs, int32_t n_layer = 6) {
    const ModelShape shape = llama_shape({.n_layer = n_layer});
    std::vector<LayerPlan> plans;
    for (const std::string& spec : specs) plans.push_back(resolve(spec, shape));
    return plans;
}

std::vector<std::string> blocks(int32_t n_layer) {
    std::vector<std::string> specs{""};
    for (int32_t i = 0; i < n_layer; ++i) {
        for (int32_t j = i + 1; j <= n_layer; ++j) specs.push_back(fmt::format("{},{}", i, j));
    }
    return specs;
}

TEST(PlanTree, SharesWhatPlansBeginWith) {
    const PlanTree tree = make_plan_tree(plans_of({"", "3,5"}));
    // The identity's six passes, then 3 and 4 once more and 5 behind them.
    EXPECT_EQ(tree.n_passes(), 9U);
}

TEST(PlanTree, GivesTheLastPassOfEveryPlanALeafOfItsOwn) {
    // The second path is where the first one goes through.
    const PlanTree tree = make_plan_tree(plans_of({"layers:0..3", "layers:0..2"}));
    EXPECT_EQ(tree.n_passes(), 5U);
    std::multiset<int32_t> leaves;
    for (const PlanTree::Node& node : tree.nodes) {
        if (node.plan != PlanTree::none) leaves.insert(node.plan);
    }
    EXPECT_THAT(leaves, testing::ElementsAre(0, 1));
}

TEST(PlanTree, RunsEveryNodeOnceAndAfterItsParent) {
    const PlanTree tree =
        make_plan_tree(plans_of({"", "0,6", "2,4;2,4", "drop:3", "skip:2", "layers:5..0,0..5"}));
    std::set<int32_t> done;
    for (const PlanTree::Step& step : tree.steps) {
        for (const int32_t n : step.nodes) {
            const int32_t parent = tree.nodes[static_cast<size_t>(n)].parent;
            EXPECT_TRUE(parent == PlanTree::none || done.contains(parent));
        }
        for (const int32_t n : step.nodes) EXPECT_TRUE(done.insert(n).second);
    }
    EXPECT_EQ(done.size(), tree.nodes.size());
}

TEST(PlanTree, ScansAllBlocksInTwoSweeps) {
    // By hand for N layers: the identity's N passes, its last layer once more for the blocks that
    // end there and go on, and of plan (i, j) the passes from i on.
    for (const int32_t n : {4, 8, 16}) {
        const PlanTree tree = make_plan_tree(plans_of(blocks(n), n));
        int32_t expected = n + 1;
        for (int32_t i = 0; i < n; ++i) expected += (n - i) * (n - i);
        EXPECT_EQ(tree.n_passes(), static_cast<size_t>(expected));
        // Each layer inside and as a leaf, once for the identity and once for all blocks.
        EXPECT_LE(tree.steps.size(), static_cast<size_t>(2 * n + 2));
    }
}

TEST(PlanTree, TheReferenceComesFirst) {
    const PlanTree tree = make_plan_tree(plans_of({"", "layers:0..1", "3,5"}));
    bool reference_done = false;
    for (const PlanTree::Step& step : tree.steps) {
        for (const int32_t n : step.nodes) {
            const int32_t plan = tree.nodes[static_cast<size_t>(n)].plan;
            if (plan == 0) reference_done = true;
            if (plan > 0) {
                EXPECT_TRUE(reference_done);
            }
        }
    }
}

TEST(PlanTree, KnowsHowManyStreamsItHolds) {
    // One stream goes in while the next comes out.
    EXPECT_EQ(make_plan_tree(plans_of({""})).peak_streams(), 2U);
    EXPECT_EQ(make_plan_tree(plans_of({"", "3,5"})).peak_streams(), 2U);
    // Two branches at one layer, in and out.
    EXPECT_EQ(make_plan_tree(plans_of({"", "1,2", "3,5"})).peak_streams(), 4U);
}

TEST(PlanTree, MarksTellPassesApart) {
    const PlanTree tree = make_plan_tree(plans_of({"", "drop:2", "layers:0..1,2[scale=0.5],3..5"}));
    // Layers 2 to 5 in each of the two other plans.
    EXPECT_EQ(tree.n_passes(), 6U + 4U + 4U);
}

}  // namespace
}  // namespace pleat
