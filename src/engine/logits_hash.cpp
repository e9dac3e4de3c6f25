#include "engine/logits_hash.h"

#include <fmt/format.h>

#include <bit>
#include <cstdint>

namespace pleat {

std::string logits_hash(std::span<const float> logits) {
    uint64_t hash = 0xcbf29ce484222325;
    for (const float logit : logits) {
        const auto bits = std::bit_cast<uint32_t>(logit);
        for (unsigned shift = 0; shift < 32; shift += 8) {
            hash ^= (bits >> shift) & 0xff;
            hash *= 0x100000001b3;
        }
    }
    return fmt::format("{:016x}", hash);
}

}  // namespace pleat
