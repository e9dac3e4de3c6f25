#include "base/memory.h"

#include <fstream>
#include <limits>
#include <string>

namespace pleat {

std::optional<uint64_t> available_memory() {
    std::ifstream info("/proc/meminfo");
    std::string key;
    uint64_t kib = 0;
    while (info >> key >> kib) {
        if (key == "MemAvailable:") return kib * 1024;
        info.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
    }
    return std::nullopt;
}

}  // namespace pleat
