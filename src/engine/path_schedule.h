#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.h"

namespace pleat {

/// In which order the passes of many plans are run for one token each, so that as many plans as can
/// take a pass together.
struct PathSchedule {
    /// One pass for some plans. A plan that takes a layer again does so in another one.
    struct Batch {
        Pass pass;                    ///< its slot is its own: the batch's index, or no_slot
        std::vector<uint32_t> plans;  ///< ascending
        bool operator==(const Batch&) const = default;
    };
    std::vector<Batch> batches;
    std::vector<std::vector<size_t>> batch_of;  ///< by plan and place in its path
};

/// Sweeps over the layers in ascending order; a path that steps back waits for the next sweep. A
/// batch has passes that compute alike (whatever their slots).
PathSchedule schedule_paths(std::span<const LayerPlan> plans);

}  // namespace pleat
