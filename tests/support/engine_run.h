#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "serve/engine.h"

/// The serving engine on a file, and what comes of its jobs.
namespace pleat::test {

/// All that a client sees of one job.
struct Answer {
    std::string text;
    std::vector<TokenOutput> tokens;
    JobResult result;

    std::vector<int32_t> ids() const;
};
void PrintTo(const Answer& answer, std::ostream* out);

/// Same tokens, same text, same end, same log probabilities bit for bit.
bool same_answer(const Answer& a, const Answer& b);

/// An engine with what it needs to live. `plans`: a SPEC for each variant, named v0, v1, ...
class EngineRun {
  public:
    explicit EngineRun(const std::string& path, const EngineSettings& settings = {},
                       const std::vector<std::string>& plans = {""});

    Engine& engine() { return *engine_; }
    const Tokenizer& tokenizer() const { return tokenizer_; }

    /// Submits all at once and waits for all. Throws Error as Engine::submit does, and when the
    /// queue is full.
    std::vector<Answer> run(const std::vector<JobRequest>& requests);
    Answer run(const JobRequest& request) { return run(std::vector{request}).front(); }

  private:
    Tokenizer tokenizer_;
    std::unique_ptr<Engine> engine_;
};

/// All of a job that was submitted.
Answer wait_for(Job& job);

/// 1 thread, chunks of `chunk` tokens, `n_slots` slots of n_ctx tokens.
EngineSettings engine_settings(uint32_t n_slots, uint32_t n_ctx = 1024, uint32_t chunk = 32);

/// Greedy, `n_predict` tokens and no fewer, with the likeliest two of each step.
JobRequest greedy(std::vector<int32_t> prompt, int32_t n_predict = 12);

}  // namespace pleat::test
