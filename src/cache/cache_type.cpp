#include "cache/cache_type.h"

#include "base/error.h"

namespace pleat {

ggml_type ggml_type_of(const CacheType& type) {
    for (int i = 0; i < GGML_TYPE_COUNT; ++i) {
        const auto candidate = static_cast<ggml_type>(i);
        if (ggml_type_name(candidate) != nullptr && type.name == ggml_type_name(candidate)) {
            return candidate;
        }
    }
    fail("cache type {} is not known to this ggml", type.name);
}

}  // namespace pleat
