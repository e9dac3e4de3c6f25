#include "base/cpu.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <thread>

namespace pleat {

int physical_cores() {
    const unsigned n_cpu = std::max(1U, std::thread::hardware_concurrency());
    std::set<std::string> cores;
    for (unsigned cpu = 0; cpu < n_cpu; ++cpu) {
        std::ifstream siblings("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                               "/topology/thread_siblings_list");
        std::string line;
        if (std::getline(siblings, line)) cores.insert(line);
    }
    return static_cast<int>(cores.empty() ? n_cpu : cores.size());
}

std::string cpu_name() {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);) {
        const size_t colon = line.find(": ");
        if (line.starts_with("model name") && colon != std::string::npos) {
            return line.substr(colon + 2);
        }
    }
    return {};
}

}  // namespace pleat
