#include "lab/plan_tree.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace pleat {
namespace {

/// What decides whether passes compute alike; their slots do not.
auto kind_of(const Pass& pass) {
    return std::tuple(pass.layer, pass.attention, pass.ffn, pass.scale, pass.qk_scale);
}

}  // namespace

PlanTree make_plan_tree(const std::vector<LayerPlan>& plans) {
    PlanTree tree;
    using Kind = decltype(kind_of(Pass{}));
    std::map<std::pair<int32_t, Kind>, int32_t> known;  // inner nodes by parent and pass
    std::vector<int32_t> owners;                        // the plan that made each node
    for (size_t p = 0; p < plans.size(); ++p) {
        const LayerPlan& plan = plans[p];
        int32_t parent = PlanTree::none;
        for (size_t i = 0; i < plan.size(); ++i) {
            PlanTree::Node node{.pass = plan[i], .parent = parent};
            if (parent != PlanTree::none) {
                const PlanTree::Node& before = tree.nodes[static_cast<size_t>(parent)];
                const bool back = node.pass.layer <= before.pass.layer;
                node.generation = before.generation + (back ? 1 : 0);
            }
            const auto index = static_cast<int32_t>(tree.nodes.size());
            if (i + 1 == plan.size()) {
                node.plan = static_cast<int32_t>(p);
            } else {
                const auto [entry, is_new] = known.try_emplace({parent, kind_of(node.pass)}, index);
                parent = entry->second;
                if (!is_new) continue;
            }
            tree.nodes.push_back(node);
            owners.push_back(static_cast<int32_t>(p));
        }
    }

    using Order = std::tuple<bool, int32_t, Kind, bool>;
    std::map<Order, PlanTree::Step> steps;
    for (size_t i = 0; i < tree.nodes.size(); ++i) {
        const PlanTree::Node& node = tree.nodes[i];
        const bool leaf = node.plan != PlanTree::none;
        PlanTree::Step& step = steps[{owners[i] != 0, node.generation, kind_of(node.pass), leaf}];
        step.leaves = leaf;
        step.nodes.push_back(static_cast<int32_t>(i));
    }
    for (auto& [order, step] : steps) tree.steps.push_back(std::move(step));
    return tree;
}

size_t PlanTree::peak_streams() const {
    std::vector<int> children(nodes.size());
    int of_embedding = 0;
    for (const Node& node : nodes) {
        ++(node.parent == none ? of_embedding : children[static_cast<size_t>(node.parent)]);
    }
    size_t held = 1;
    size_t peak = 1;
    for (const Step& step : steps) {
        if (!step.leaves) held += step.nodes.size();
        peak = std::max(peak, held);
        for (const int32_t n : step.nodes) {
            const int32_t parent = nodes[static_cast<size_t>(n)].parent;
            int& left = parent == none ? of_embedding : children[static_cast<size_t>(parent)];
            if (--left == 0) --held;
        }
    }
    return peak;
}

}  // namespace pleat
