#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "generate/generation.h"

namespace pleat {

/// What a request wants of the engine: one sequence. A request for n answers is n jobs.
struct JobRequest {
    enum class Kind : uint8_t { completion, embedding };

    Kind kind = Kind::completion;
    size_t variant = 0;
    std::vector<int32_t> prompt = {};  ///< valid tokens, at least one, fits the context
    GenerationParams generation = {};
    /// Log probabilities wanted per token: -1 none, 0 the drawn token's, n also the n likeliest.
    int n_probs = -1;
    bool cache_prompt = true;                 ///< may begin with what a slot still holds
    int32_t slot = -1;                        ///< this one and no other; -1: any
    std::chrono::milliseconds time_limit{0};  ///< of generation (t_max_predict_ms); 0: none
};

struct TokenProb {
    int32_t token = 0;
    float logprob = 0.0F;  ///< of the softmax over all logits, before any sampler
};

/// A drawn token. The text it leads to may come later: characters and stop strings are held back.
struct TokenOutput {
    TokenProb drawn = {};
    std::vector<TokenProb> top = {};  ///< likeliest first
};

struct JobTimings {
    size_t n_prompt = 0;     ///< tokens of the prompt
    size_t n_cached = 0;     ///< of those, taken from the slot's cache
    size_t n_predicted = 0;  ///< tokens drawn
    double prompt_ms = 0.0;
    double predicted_ms = 0.0;
};

/// What happened since the last one: one step, or the end.
struct JobEvent {
    std::string text = {};
    std::vector<TokenOutput> tokens = {};  ///< also without n_probs: then `logprob` is 0
    JobTimings timings = {};               ///< up to here
    bool last = false;
};

struct JobResult {
    FinishReason reason = FinishReason::length;
    std::string stop = {};      ///< the stop string that ended it
    std::string error = {};     ///< one line; empty: none. The text so far has been delivered
    bool client_error = false;  ///< the request's own fault (a grammar that leaves no token)
    uint32_t seed = 0;
    int32_t slot = -1;
    JobTimings timings = {};
    /// Of an embedding: one row of n_embd for pooled ones, else one per token.
    std::vector<std::vector<float>> embeddings = {};
};

/// A request under way, shared by the thread that asked and the engine. All of it is safe to use
/// from both.
class Job {
  public:
    explicit Job(JobRequest request) : request_(std::move(request)) {}

    const JobRequest& request() const { return request_; }

    /// Asks the engine to stop; the slot is free within one step.
    void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
    bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

    /// For the engine. Never waits: events are kept until somebody takes them, joined to one.
    void push(JobEvent event);
    void finish(JobResult result, JobEvent last = {});

    /// All that happened since the last call, joined; waits for something, no longer than
    /// `patience` (then no value). Nothing comes after an event with `last`.
    std::optional<JobEvent> next(std::chrono::milliseconds patience);
    /// Once an event with `last` was taken.
    const JobResult& result() const { return result_; }
    /// When the engine began with it; false while it waits in the queue.
    bool started() const { return started_.load(std::memory_order_relaxed); }
    void mark_started() { started_.store(true, std::memory_order_relaxed); }

  private:
    const JobRequest request_;
    std::atomic<bool> cancelled_ = false;
    std::atomic<bool> started_ = false;
    std::mutex mutex_;
    std::condition_variable changed_;
    JobEvent pending_;
    bool has_pending_ = false;
    JobResult result_;
};

}  // namespace pleat
