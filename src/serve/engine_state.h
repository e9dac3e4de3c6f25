#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace pleat {

class Job;

/// What one server slot is doing.
struct SlotState {
    size_t variant = 0;
    int32_t id = 0;
    bool busy = false;
    bool prompt = false;  ///< still at the prompt
    size_t n_prompt = 0;
    size_t n_prompt_done = 0;
    size_t n_decoded = 0;
    size_t n_cached = 0;                  ///< tokens that the slot's cache holds
    std::shared_ptr<const Job> job = {};  ///< what it works at; null: nothing
};

/// What an engine has done since it began; the last two: what it does now.
struct EngineCounters {
    uint64_t prompt_tokens = 0;  ///< processed, without cached ones
    uint64_t cached_tokens = 0;
    uint64_t predicted_tokens = 0;
    double prompt_seconds = 0.0;  ///< of computing
    double predicted_seconds = 0.0;
    uint64_t decode_steps = 0;
    uint64_t busy_slots_sum = 0;  ///< over decode steps: sequences decoded
    uint64_t jobs_done = 0;
    uint64_t jobs_failed = 0;
    uint64_t jobs_cancelled = 0;
    uint64_t jobs_refused = 0;
    size_t waiting = 0;
    size_t running = 0;
};

}  // namespace pleat
