#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/context.h"
#include "serve/engine_state.h"
#include "serve/job.h"
#include "serve/pooling.h"
#include "text/tokenizer.h"

namespace pleat {

class EngineLoop;
struct ReadyJob;

/// A plan that is served under a name; variants share the model's weights.
struct VariantSettings {
    std::string name;
    LayerPlan plan;
};

struct EngineSettings {
    /// n_seq server slots per variant, n_ctx tokens each. n_ubatch is the size of a prompt's
    /// chunks.
    ContextSettings context;
    size_t queue = 256;            ///< jobs that wait; more are refused
    bool deterministic = false;    ///< decode sequences one by one: bits do not depend on others
    size_t n_snapshots = 4;        ///< of recurrent states, per slot
    float slot_similarity = 0.1F;  ///< share of the prompt a slot must hold to be preferred
    std::optional<Pooling> pooling = {};  ///< nothing: the file's, else last
};

/// Runs jobs: one thread that computes, continuous batching over server slots (design: docs/design/
/// serving.md). A prompt is run in chunks of n_ubatch tokens counted from its own start, each alone
/// in its ubatch, one between two decode steps; decode steps of one variant's slots share a batch;
/// variants take turns. What a slot holds is used again back to the end of a chunk.
class Engine {
  public:
    /// Loads what the plans need. Throws Error as Context does.
    Engine(std::shared_ptr<Model> model, const Tokenizer& tokenizer,
           std::vector<VariantSettings> variants, const EngineSettings& settings,
           const LoadProgress& progress = {});
    /// Cancels what runs.
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    /// Queues jobs, all or none; false when the queue is full or the engine drains. Throws Error
    /// when a job can never run: more of them than the queue holds, an empty prompt or one that
    /// does not fit (both numbers), a token that does not exist, a slot or variant that does not
    /// exist, sampling parameters or a grammar out of range, embeddings where the model has none.
    bool submit(std::span<const std::shared_ptr<Job>> jobs);

    /// Takes no more jobs; returns true when all are done, false when `patience` ended first.
    bool drain(std::chrono::milliseconds patience);
    /// Cancels what waits and what runs, after the step that it is at; takes no more jobs.
    void stop();
    bool stopping() const;  ///< since stop()

    size_t n_variants() const { return variants_.size(); }
    const VariantSettings& variant(size_t index) const { return variants_.at(index); }
    const Context& context(size_t variant) const;  ///< for its settings and sizes only
    uint32_t n_ctx() const;                        ///< tokens a slot holds
    Pooling pooling() const { return pooling_; }

    std::vector<SlotState> slots() const;
    EngineCounters counters() const;

  private:
    ReadyJob prepared(std::shared_ptr<Job> job) const;

    const Tokenizer& tokenizer_;
    std::vector<VariantSettings> variants_;
    Pooling pooling_;
    std::unique_ptr<EngineLoop> loop_;
};

}  // namespace pleat
