#include "plan_file/cost_json.h"

#include "plan/cost_ratio.h"

namespace pleat {

using nlohmann::ordered_json;

ordered_json cost_json(const PlanCost& cost) {
    return {
        {"n_pass", cost.n_pass},
        {"weight_resident_bytes", cost.weight_resident_bytes},
        {"weight_read_bytes_per_token", cost.weight_read_bytes},
        {"flops_per_token", cost.flops},
        {"kv_bytes_per_token", cost.kv_bytes_per_token()},
        {"kv_bytes_full", cost.kv_bytes_full},
        {"kv_bytes_window", cost.kv_bytes_window},
        {"state_bytes", cost.state_bytes},
        {"cache_bytes", cost.cache_bytes()},
    };
}

ordered_json cost_ratios_json(const PlanCost& cost, const PlanCost& identity) {
    return {
        {"passes",
         cost_ratio(static_cast<uint64_t>(cost.n_pass), static_cast<uint64_t>(identity.n_pass))},
        {"weight_resident_bytes",
         cost_ratio(cost.weight_resident_bytes, identity.weight_resident_bytes)},
        {"weight_read_bytes_per_token",
         cost_ratio(cost.weight_read_bytes, identity.weight_read_bytes)},
        {"flops_per_token", cost_ratio(cost.flops, identity.flops)},
        {"kv_bytes_per_token",
         cost_ratio(cost.kv_bytes_per_token(), identity.kv_bytes_per_token())},
        {"cache_bytes", cost_ratio(cost.cache_bytes(), identity.cache_bytes())},
        {"decode_time_predicted", predicted_decode_ratio(cost, identity)},
    };
}

}  // namespace pleat
