#pragma once

#include <nlohmann/json.hpp>

#include "plan/cost.h"

namespace pleat {

/// A plan's costs as reports and servers tell them; units are in the names.
nlohmann::ordered_json cost_json(const PlanCost& cost);

/// The same as multiples of the identity plan's.
nlohmann::ordered_json cost_ratios_json(const PlanCost& cost, const PlanCost& identity);

}  // namespace pleat
