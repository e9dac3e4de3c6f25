#pragma once

#include "jinja/filters.h"

namespace pleat::jinja {

/// Filters of lists and mappings: dictsort first groupby items join last list map max min reject
/// rejectattr reverse select selectattr sort sum unique and others. Null when there is none.
Filter find_list_filter(std::string_view name);

}  // namespace pleat::jinja
