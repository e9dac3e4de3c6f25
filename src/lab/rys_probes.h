#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "lab/probes.h"

namespace pleat {

// How RYS (github dnhkng/RYS) reads and scores answers, so that its numbers can be compared with.

/// Without `<think>...</think>` spans, without all that follows an open `<think>`, trimmed.
std::string without_thinking(std::string_view text);

/// The integer in the text, of all runs of digits, that earns the most partial credit; without any
/// outside the thinking, of the raw text. Signs, decimal points and thousands separators only
/// separate, and a list of guesses can only gain. An exact zero scores 0.
ProbeResult read_rys_math(std::string_view answer, std::string_view text);

/// Four intensities as RYS finds them in an answer.
struct EqReading {
    std::array<double, 4> scores{5.0, 5.0, 5.0, 5.0};
    double confidence = 0.0;  ///< 1 revised and first-pass section, 0.9 or 0.8 one of them, 0.5
                              ///< four numbers anywhere, k/8 only k of them
    size_t n_read = 0;        ///< the others are 5
    bool operator==(const EqReading&) const = default;
};
EqReading read_eq_scores(std::string_view text);

/// score = confidence * raw + (1 - confidence) / 2, raw = max(0, 1 - sum |predicted - reference| /
/// 40). Predictions are not scaled there though references are; ProbeResult::eq scales both.
ProbeResult read_rys_eq(const EqReference& reference, std::string_view text);

}  // namespace pleat
