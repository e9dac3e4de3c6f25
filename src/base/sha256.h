#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace pleat {

/// SHA-256 (FIPS 180-4) of bytes that come in any number of pieces: names texts, probes and parts
/// of models, so that what was measured on can be found again with `sha256sum`.
class Sha256 {
  public:
    Sha256& add(std::span<const std::byte> bytes);
    Sha256& add(std::string_view text);
    /// 64 hex digits of all that was added. Ends the hash: nothing is added after.
    std::string hex();

  private:
    void block(const std::byte* bytes);

    std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    std::array<std::byte, 64> pending_{};
    uint64_t n_bytes_ = 0;
};

std::string sha256(std::string_view text);

}  // namespace pleat
