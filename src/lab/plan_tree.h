#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace pleat {

/// Plans as a tree by common prefix: a node is one pass after all that led to it, so plans that
/// begin alike share it. The last pass of a plan is a leaf of its own, since only there are the
/// rows nobody asked for left out.
struct PlanTree {
    static constexpr int32_t none = -1;

    struct Node {
        Pass pass;
        int32_t parent = none;   ///< none: the embedding
        int32_t plan = none;     ///< of a leaf: whose last pass it is
        int32_t generation = 0;  ///< how often the path so far has stepped back
        bool operator==(const Node&) const = default;
    };
    /// Nodes that can run in one batch: the same pass (whatever its slot) on other streams.
    struct Step {
        std::vector<int32_t> nodes;
        bool leaves = false;
        bool operator==(const Step&) const = default;
    };

    std::vector<Node> nodes;
    /// Every node once, after its parent. The first plan is the reference that others are compared
    /// with, so its nodes come first; then, generation by generation, all layers in ascending
    /// order: what is due at a layer runs together, and a path that steps back waits for the next
    /// sweep.
    std::vector<Step> steps;

    /// How many residual streams are held at most while the steps run, the embedding's included.
    size_t peak_streams() const;
    /// Passes that are computed, leaves included.
    size_t n_passes() const { return nodes.size(); }
};

PlanTree make_plan_tree(const std::vector<LayerPlan>& plans);

}  // namespace pleat
