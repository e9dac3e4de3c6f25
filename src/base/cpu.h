#pragma once

namespace pleat {

/// Physical cores (hyper-threads do not help matrix products); at least 1.
int physical_cores();

}  // namespace pleat
