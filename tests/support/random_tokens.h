#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace pleat::test {

/// `count` tokens of a vocabulary of `n_vocab`; the same ones for the same seed everywhere, since
/// the standard fixes what mt19937 gives but not what its distributions make of it.
inline std::vector<int32_t> random_tokens(uint32_t seed, size_t count, int n_vocab) {
    std::mt19937 random(seed);
    std::vector<int32_t> tokens(count);
    for (int32_t& token : tokens) {
        token = static_cast<int32_t>(random() % static_cast<uint32_t>(n_vocab));
    }
    return tokens;
}

/// Seeds 1 to `count`, for properties that are tried many times.
inline std::vector<uint32_t> seeds(uint32_t count) {
    std::vector<uint32_t> values(count);
    for (uint32_t i = 0; i < count; ++i) values[i] = i + 1;
    return values;
}

}  // namespace pleat::test
