// Any bytes as a spec: an Error of one line, or a spec and plans that print and read back.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "support/spec_invariants.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    pleat::test::check_spec_text({reinterpret_cast<const char*>(data), size});
    return 0;
}
