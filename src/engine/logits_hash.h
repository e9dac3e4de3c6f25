#pragma once

#include <span>
#include <string>

namespace pleat {

/// 16 hex digits of FNV-1a (64 bit) over the bytes of the floats, least significant byte first:
/// says whether two runs came to the same logits, bit for bit, without keeping them.
std::string logits_hash(std::span<const float> logits);

}  // namespace pleat
