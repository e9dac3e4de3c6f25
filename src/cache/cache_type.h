#pragma once

#include <ggml.h>

#include "plan/cost.h"

namespace pleat {

/// The ggml type of a K/V cache type. Throws Error when this ggml does not know it.
ggml_type ggml_type_of(const CacheType& type);

}  // namespace pleat
