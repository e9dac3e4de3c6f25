#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/context.h"
#include "generate/generation.h"
#include "serve/engine_state.h"
#include "serve/job.h"
#include "serve/pooling.h"
#include "serve/prompt_cache.h"

namespace pleat {

/// A job with what draws its tokens. The Generation is made by the thread that asks, since a
/// grammar may take a while to read; a job for embeddings has none.
struct ReadyJob {
    std::shared_ptr<Job> job;
    std::unique_ptr<Generation> generation;
};

/// One sequence of a context, and the job that it works at, from the first chunk of the prompt to
/// the last token. It says what is to be decoded next and takes what came of it, but never decodes
/// itself. Belongs to the engine's thread.
class ServerSlot {
  public:
    using Clock = std::chrono::steady_clock;

    /// `counters` counts what it does, and outlives it.
    ServerSlot(PromptCache cache, EngineCounters& counters)
        : cache_(std::move(cache)), counters_(counters) {}

    int32_t id() const { return cache_.sequence(); }
    bool idle() const { return work_.job == nullptr; }
    bool in_prompt() const { return !idle() && n_done_ < prompt().size(); }
    bool generating() const { return !idle() && n_done_ == prompt().size(); }
    bool cancelled() const { return !idle() && work_.job->cancelled(); }
    const PromptCache& cache() const { return cache_; }
    Clock::time_point last_used() const { return last_used_; }
    SlotState state(size_t variant) const;

    void begin(ReadyJob work);

    /// Of the prompt; only while there is a job.
    std::span<const int32_t> prompt() const { return work_.job->request().prompt; }
    size_t n_done() const { return n_done_; }
    /// May its prompt begin with what was computed for others?
    bool reuses() const { return work_.job->request().cache_prompt && !wants_embedding(); }
    /// Takes the first `n` tokens of its prompt over from another slot, which has them as
    /// PromptCache::reusable says: more than this one has done.
    void adopt(const ServerSlot& other, size_t n);

    /// The prompt's next tokens, to be decoded in one piece at the end of the sequence.
    std::span<const int32_t> next_chunk() const;
    bool at_last_chunk() const { return next_chunk().size() == prompt().size() - n_done_; }
    bool wants_embedding() const { return work_.generation == nullptr; }
    /// After they were decoded. With the last ones the job goes on to its answer, and may end.
    void took_chunk(const Context& context, Pooling pooling);

    /// The token drawn last, to be decoded while generating.
    int32_t next_token() const { return work_.generation->tokens().back(); }
    /// After it was decoded, with the logits that came of it, F32 [n_vocab]: draws the next one.
    /// The job may end.
    void took_token(std::span<const float> logits);

    void finish(FinishReason reason);
    /// Ends the job; what the sequence holds is given up, since it may be broken.
    void break_off(const std::string& error, bool client_error);

  private:
    void draw(std::span<const float> logits);
    bool out_of_time() const;
    JobTimings timings(Clock::time_point now) const;  ///< after the prompt
    void end(JobResult result, JobEvent last);

    PromptCache cache_;
    EngineCounters& counters_;
    ReadyJob work_;
    size_t n_done_ = 0;    ///< tokens of the prompt that the sequence holds
    size_t n_reused_ = 0;  ///< of those, from an earlier prompt
    bool has_newline_ = false;
    std::vector<std::vector<float>> hidden_;
    Clock::time_point begun_;
    Clock::time_point prompt_done_;
    Clock::time_point last_used_;
};

}  // namespace pleat
