#pragma once

#include <cstdint>

namespace pleat {

/// SplitMix64 (Steele, Lea and Flood 2014): a stream of 64 bits a seed, in integer arithmetic only,
/// so that resamples and generated probes are the same on every platform.
class SplitMix64 {
  public:
    explicit SplitMix64(uint64_t seed) : state_(seed) {}

    uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15U); }

    /// A number in [0, n), n < 2^32, by multiplication (Lemire 2019) of the upper half; no value is
    /// more than n / 2^32 likelier than another.
    uint32_t below(uint32_t n) { return static_cast<uint32_t>(((next() >> 32) * n) >> 32); }

    /// Also a hash of 64 bits on its own.
    static constexpr uint64_t mix(uint64_t z) {
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
        return z ^ (z >> 31);
    }

  private:
    uint64_t state_;
};

}  // namespace pleat
