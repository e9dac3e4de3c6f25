#pragma once

// A scan that never was: numbers with the look of one, the same every time.

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "lab/report.h"

namespace pleat {

inline ReportData made_up_scan(int32_t n_layer) {
    ReportData data{
        .title = "Scan of repeated blocks",
        .model =
            fmt::format("tiny </script><b>bold</b>, llama, {} layers, f32:65 q4_K:193", n_layer),
        .command = "pleat scan tiny.gguf --text text.txt --probes logic.jsonl",
        .n_layer = n_layer,
        .n_plans_tried = static_cast<size_t>(n_layer) * static_cast<size_t>(n_layer + 1) / 2,
        .measures =
            {{.measure = {.name = "nll"},
              .unit = "nats per token",
              .identity = {.selection = Score{2.4761, 0.0341}, .validation = Score{2.4902, 0.0512}},
              .n_selection = 64,
              .n_validation = 32},
             {.measure = {.name = "probe:logic", .higher_is_better = true},
              .unit = "0 to 1",
              .identity = {.selection = Score{0.61, 0.031}, .validation = Score{0.60, 0.044}},
              .n_selection = 200,
              .n_validation = 100}},
        .settings = {{"context", "512 tokens"}, {"text", "text.txt, sha256 ba7816bf..."}},
        .notes = {"Made up for a test."}};
    uint32_t state = 1;
    const auto noise = [&] {
        state = state * 1664525U + 1013904223U;
        return static_cast<double>(state >> 8U) / (1U << 24U) - 0.5;
    };
    for (int32_t end = 1; end <= n_layer; ++end) {
        for (int32_t begin = 0; begin < end; ++begin) {
            const double n = n_layer;
            const double size = (end - begin) / n;
            const double middle = (begin + end) / 2.0 / n;
            const double at_edge = std::exp(-12 * begin / n) + std::exp(-14 * (n - end) / n);
            const double sweet = std::exp(-40 * (middle - 0.55) * (middle - 0.55)) *
                                 std::exp(-30 * (size - 0.12) * (size - 0.12));
            const double nll = 0.9 * at_edge + 0.5 * size - 0.09 * sweet + 0.02 * noise();
            const double logic = -0.3 * at_edge - 0.1 * size + 0.11 * sweet + 0.03 * noise();
            const double compute = 1 + size * 0.97;
            data.rows.push_back(
                {.flag = fmt::format("--repeat-layers \"{},{}\"", begin, end),
                 .canonical = fmt::format("0..{},{}..{}", end - 1, begin, n_layer - 1),
                 .begin = begin,
                 .end = end,
                 .compute_ratio = compute,
                 .read_ratio = compute,
                 .kv_ratio = 1 + size,
                 .scores = {{.selection = Score{2.4761 + nll, 0.034 + 0.01 * size},
                             .difference = Difference{nll, nll - 0.02, nll + 0.02},
                             .validation = Score{2.4902 + nll + 0.02 * noise(), 0.05},
                             .survives = nll < -0.05},
                            {.selection = Score{0.61 + logic, 0.03},
                             .difference = Difference{logic, logic - 0.05, logic + 0.05},
                             .validation = Score{0.60 + logic + 0.03 * noise(), 0.045},
                             .survives = logic > 0.11}}});
        }
    }
    return data;
}

}  // namespace pleat
