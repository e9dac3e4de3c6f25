#include "plan/plan.h"

#include "plan/message.h"
#include "plan/path.h"
#include "plan/rules.h"

namespace pleat {
namespace {

/// Gives every pass its slot: a shared-KV consumer the one its owner wrote last.
std::vector<Slot> assign_slots(std::vector<Pass>& passes, const ModelShape& shape) {
    std::vector<Slot> slots;
    std::vector<int32_t> latest(shape.layers.size(), no_slot);
    for (size_t i = 0; i < passes.size(); ++i) {
        Pass& pass = passes[i];
        const LayerShape& layer = shape.layers[static_cast<size_t>(pass.layer)];
        if (!pass.attention) continue;
        if (layer.role == Role::shared_kv_attention) {
            pass.slot = latest[static_cast<size_t>(layer.kv_owner)];
            continue;
        }
        pass.slot = static_cast<int32_t>(slots.size());
        latest[static_cast<size_t>(pass.layer)] = pass.slot;
        slots.push_back({.layer = pass.layer, .pass = static_cast<int32_t>(i)});
    }
    return slots;
}

bool is_identity_path(const std::vector<Pass>& passes, const ModelShape& shape) {
    if (passes.size() != shape.layers.size()) return false;
    for (size_t i = 0; i < passes.size(); ++i) {
        // The slot follows from the rest, so it is not a second opinion.
        const Pass plain{.layer = static_cast<int32_t>(i), .slot = passes[i].slot};
        if (passes[i] != plain) return false;
    }
    return true;
}

/// The roles come from metadata, and every rule indexes by them.
void check_shape(const ModelShape& shape) {
    if (shape.n_layer < 1 || shape.layers.size() != static_cast<size_t>(shape.n_layer)) {
        fail("the model has {} layers, but the shapes of {}", shape.n_layer, shape.layers.size());
    }
    for (size_t i = 0; i < shape.layers.size(); ++i) {
        const LayerShape& layer = shape.layers[i];
        if (layer.role != Role::shared_kv_attention) continue;
        const int32_t owner = layer.kv_owner;
        if (owner < 0 || owner >= shape.n_layer ||
            !owns_kv(shape.layers[static_cast<size_t>(owner)].role)) {
            fail("layer {} reads the K/V of layer {}, which owns none", i, owner);
        }
    }
}

}  // namespace

LayerPlan LayerPlan::resolve(const Spec& spec, const ModelShape& shape) {
    check_shape(shape);
    Path path = build_path(spec, shape);
    if (path.passes.empty()) fail("the path is empty; at least one layer must be run");
    apply_drops(path, spec, shape);
    check_path(path, spec, shape);
    LayerPlan plan;
    plan.slots_ = assign_slots(path.passes, shape);
    plan.warnings_ = path_warnings(path, shape);
    plan.identity_ = is_identity_path(path.passes, shape);
    plan.passes_ = std::move(path.passes);
    return plan;
}

std::vector<Seam> LayerPlan::seams() const {
    std::vector<Seam> seams;
    for (size_t i = 1; i < passes_.size(); ++i) {
        const int32_t from = passes_[i - 1].layer;
        const int32_t to = passes_[i].layer;
        if (to != from + 1) seams.push_back({static_cast<int32_t>(i), from, to});
    }
    return seams;
}

std::vector<InsertedCopy> LayerPlan::inserted_copies() const {
    std::vector<InsertedCopy> copies;
    std::vector<bool> visited;
    bool in_copy = false;
    for (size_t i = 0; i < passes_.size(); ++i) {
        const int32_t layer = passes_[i].layer;
        const auto index = static_cast<size_t>(layer);
        if (visited.size() <= index) visited.resize(index + 1);
        if (!visited[index]) {
            visited[index] = true;
            in_copy = false;
        } else if (in_copy && copies.back().end == layer) {
            ++copies.back().end;
        } else {
            copies.push_back({layer, layer + 1, static_cast<int32_t>(i)});
            in_copy = true;
        }
    }
    return copies;
}

std::string LayerPlan::canonical() const { return print_path(passes_); }

std::string LayerPlan::hash() const {
    uint64_t hash = 0xcbf29ce484222325;
    for (const char c : canonical()) {
        hash ^= static_cast<unsigned char>(c);
        hash *= 0x100000001b3;
    }
    return fmt::format("{:016x}", hash);
}

}  // namespace pleat
