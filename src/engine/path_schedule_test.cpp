#include "engine/path_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plan/spec.h"
#include "plan/test_shapes.h"

namespace pleat {
namespace {

using testing::ElementsAre;

PathSchedule schedule_of(const std::vector<std::string>& specs) {
    std::vector<LayerPlan> plans;
    for (const std::string& spec : specs) {
        plans.push_back(LayerPlan::resolve(parse_spec(spec), llama_shape({.n_layer = 4})));
    }
    return schedule_paths(plans);
}

std::vector<int32_t> layers_of(const PathSchedule& schedule) {
    std::vector<int32_t> layers;
    for (const auto& batch : schedule.batches) layers.push_back(batch.pass.layer);
    return layers;
}

TEST(PathSchedule, TakesALayerForAllPlansAtOnceUntilOneStepsBack) {
    const PathSchedule schedule = schedule_of({"", "1,3", "0,2"});
    EXPECT_THAT(layers_of(schedule), ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
    EXPECT_THAT(schedule.batches[1].plans, ElementsAre(0, 1, 2));
    EXPECT_THAT(schedule.batches[2].plans, ElementsAre(0, 1));
    EXPECT_THAT(schedule.batches[3].plans, ElementsAre(0));
    EXPECT_THAT(schedule.batches[5].plans, ElementsAre(1, 2));
    EXPECT_THAT(schedule.batch_of[1], ElementsAre(0, 1, 2, 5, 6, 7));
}

TEST(PathSchedule, KeepsApartWhatComputesOtherwiseAndGivesEveryBatchASlotOfItsOwn) {
    const PathSchedule schedule = schedule_of({"", "drop:1", "drop-ffn:1"});
    EXPECT_THAT(layers_of(schedule), ElementsAre(0, 1, 1, 1, 2, 3));
    for (size_t b = 0; b < schedule.batches.size(); ++b) {
        const Pass& pass = schedule.batches[b].pass;
        EXPECT_EQ(pass.slot, pass.attention ? static_cast<int32_t>(b) : no_slot);
    }
}

}  // namespace
}  // namespace pleat
