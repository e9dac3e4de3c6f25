#include "plan/shape.h"

#include <algorithm>

namespace pleat {

std::string_view role_name(Role role) {
    switch (role) {
        case Role::full_attention:
            return "full_attention";
        case Role::local_attention:
            return "local_attention";
        case Role::gated_attention:
            return "gated_attention";
        case Role::shared_kv_attention:
            return "shared_kv_attention";
        case Role::recurrent:
            return "recurrent";
    }
    return "none";
}

bool droppable(Role role) { return role != Role::recurrent; }

bool owns_kv(Role role) { return role != Role::recurrent && role != Role::shared_kv_attention; }

WeightCost& WeightCost::operator+=(const WeightCost& other) {
    resident_bytes += other.resident_bytes;
    read_bytes += other.read_bytes;
    flops += other.flops;
    return *this;
}

bool ModelShape::hybrid() const {
    const auto recurrent = [](const LayerShape& layer) { return layer.role == Role::recurrent; };
    return std::ranges::any_of(layers, recurrent) && !std::ranges::all_of(layers, recurrent);
}

}  // namespace pleat
