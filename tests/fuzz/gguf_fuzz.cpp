// Any bytes as a GGUF file: an Error or a header that keeps its promises, nothing else.
#include <cstddef>
#include <cstdint>
#include <span>

#include "support/gguf_invariants.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    pleat::accepts_header(std::as_bytes(std::span(data, size)));
    return 0;
}
