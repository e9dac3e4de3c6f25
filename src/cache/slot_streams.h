#pragma once

#include <cstdint>

namespace pleat {

/// A slot and the sequences it has room for, where slots of one cache differ in that.
struct SlotStreams {
    int32_t layer = 0;      ///< source layer: role and sizes come from its shape
    uint32_t n_stream = 1;  ///< 0: no memory
};

}  // namespace pleat
