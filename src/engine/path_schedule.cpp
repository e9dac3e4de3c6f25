#include "engine/path_schedule.h"

#include <map>
#include <tuple>

namespace pleat {

PathSchedule schedule_paths(std::span<const LayerPlan> plans) {
    struct PassOfPlan {
        uint32_t plan = 0;
        size_t index = 0;
    };
    using Order = std::tuple<int32_t, int32_t, bool, bool, float, float>;
    std::map<Order, std::vector<PassOfPlan>> batches;
    PathSchedule schedule;
    for (uint32_t p = 0; p < plans.size(); ++p) {
        int32_t sweep = 0;
        for (size_t i = 0; i < plans[p].size(); ++i) {
            const Pass& pass = plans[p][i];
            if (i > 0 && pass.layer <= plans[p][i - 1].layer) ++sweep;
            batches[{sweep, pass.layer, pass.attention, pass.ffn, pass.scale, pass.qk_scale}]
                .push_back({p, i});
        }
        schedule.batch_of.emplace_back(plans[p].size());
    }
    for (const auto& [order, places] : batches) {
        const size_t index = schedule.batches.size();
        PathSchedule::Batch& batch = schedule.batches.emplace_back();
        batch.pass = plans[places.front().plan][places.front().index];
        if (batch.pass.slot != no_slot) batch.pass.slot = static_cast<int32_t>(index);
        for (const PassOfPlan& place : places) {
            batch.plans.push_back(place.plan);
            schedule.batch_of[place.plan][place.index] = index;
        }
    }
    return schedule;
}

}  // namespace pleat
