#pragma once

#include <string>

namespace pleat {

/// Physical cores (hyper-threads do not help matrix products); at least 1.
int physical_cores();

/// As the system names the processor, for records of measurements; empty where unknown.
std::string cpu_name();

}  // namespace pleat
