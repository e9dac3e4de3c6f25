#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cache/kv_cache.h"
#include "cache/state_cache.h"
#include "engine/context.h"
#include "engine/executor.h"
#include "engine/pass_runner.h"
#include "engine/path_schedule.h"
#include "graph/builder.h"
#include "model/model.h"
#include "plan/plan.h"

namespace pleat {

/// Decodes sequences of many plans of one model together, one token of each in a step: all that are
/// due at a layer take it in one batch, so a layer's weights are read once for all of them. A
/// sequence has K/V and states of its own in every pass of its plan; what came before its first
/// step is taken over from a PassRunner.
///
/// What a sequence gets is what a Context of its plan computes for single tokens, but for the
/// rounding of kernels that see another number of rows. Not for models in which layers read the K/V
/// of others or bring embeddings of their own.
class PathRunner {
  public:
    /// `n_seq` sequences of each plan at most, of n_ctx tokens. Loads what the plans need. Throws
    /// Error as Context does.
    PathRunner(std::shared_ptr<Model> model, std::vector<LayerPlan> plans, uint32_t n_seq,
               uint32_t n_ctx, ContextSettings settings);

    /// Can the model's passes run apart from their plan?
    static bool takes(const Model& model);
    /// Bytes of K/V and states of one sequence of n_ctx tokens.
    static uint64_t sequence_bytes(const LayerPlan& plan, const ModelShape& shape, uint32_t n_ctx,
                                   const ContextSettings& settings);

    /// A sequence under way: what the caller calls it, and its plan.
    struct Sequence {
        size_t id = 0;
        uint32_t plan = 0;
        int32_t position = 0;  ///< of its next token
    };
    /// In the order of a step's tokens and results; begin appends, end moves the last one into the
    /// gap.
    const std::vector<Sequence>& sequences() const { return sequences_; }
    size_t n_sequences(uint32_t plan) const { return n_of_plan_[plan]; }
    uint32_t n_seq() const { return n_seq_; }

    /// A sequence of the plan that has n_tokens tokens already, whose K/V and states come next.
    void begin(size_t id, uint32_t plan, uint32_t n_tokens);
    /// Takes over what the runner's last pass has made of its sequence `from`, for place `index` in
    /// the path of sequences()[row].
    void take(size_t row, size_t index, const PassRunner& runner, size_t from);
    void end(size_t row);

    /// One more token of every sequence. Throws Error when one is too long.
    void step(std::span<const int32_t> tokens);
    /// Of the last step, by its order of sequences: F32 [n_vocab].
    std::span<const float> logits(size_t row) const;

    uint64_t buffer_bytes() const {
        return full_.bytes() + window_.bytes() + states_.bytes() + executor_.buffer_bytes();
    }
    uint64_t n_graphs_built() const { return n_graphs_built_; }

  private:
    /// Plans that some batches are for. Their sequences have the same order, and so the same
    /// streams, in all of these batches.
    struct Members {
        std::vector<bool> plans;
        std::vector<size_t> batches;
        std::vector<size_t> rows;  ///< of sequences(), by stream
    };
    void check_memory() const;
    void add_members(const std::vector<uint32_t>& plans, std::optional<size_t> batch);
    void move_stream(size_t batch, size_t from, size_t to) const;
    Graph build(std::span<const uint32_t> n_rows, uint32_t n_kv) const;
    void set_inputs(std::span<const int32_t> tokens) const;

    std::shared_ptr<Model> model_;
    std::vector<LayerPlan> plans_;
    ContextSettings settings_;
    uint32_t n_seq_;
    uint32_t n_cells_;
    PathSchedule schedule_;
    std::vector<Members> members_;  ///< the first one: all plans
    std::vector<size_t> members_of_batch_;
    KvCache full_;
    KvCache window_;
    StateCache states_;
    ggml_tensor* rope_factors_ = nullptr;
    Executor executor_;
    std::optional<Graph> graph_;
    std::vector<uint32_t> graph_rows_;  ///< by members: what the graph was built for
    uint32_t graph_n_kv_ = 0;
    uint64_t n_graphs_built_ = 0;
    std::vector<Sequence> sequences_;
    std::vector<size_t> n_of_plan_;
    std::vector<float> logits_;
};

}  // namespace pleat
