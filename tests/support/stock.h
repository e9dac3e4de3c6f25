#pragma once

#include <ggml-backend.h>
#include <llama-cpp.h>
#include <llama.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "support/bits.h"

/// The oracle: llama.cpp of the same release, in the same process, on the same ggml backend. What
/// both sides must agree on for their bits to agree: docs/design/architectures/common.md,
/// section 1.
namespace pleat::test {

/// Loads ggml's backends (unless the process has them already), starts libllama and turns its log
/// into the one below; once per process. Called by everything here that needs it.
void start_stock();

/// What libllama and ggml logged since the last Stock was made, without debug lines; at most a few
/// hundred kilobytes.
std::string stock_log();

struct StockModelSettings {
    bool use_extra_bufts = true;  ///< repacked weights
    bool mmap = true;
};

struct StockSettings {
    uint32_t n_ctx = 512;
    uint32_t n_batch = 2048;  ///< at most n_ctx, whatever it says
    uint32_t n_ubatch = 512;
    uint32_t n_seq_max = 1;
    int32_t n_threads = 1;        ///< of steps of one token
    int32_t n_threads_batch = 1;  ///< of larger ones
    llama_flash_attn_type flash_attn = LLAMA_FLASH_ATTN_TYPE_AUTO;
    ggml_type type_k = GGML_TYPE_F16;
    ggml_type type_v = GGML_TYPE_F16;
    bool kv_unified = false;
    bool swa_full = false;  ///< what the command-line tools pass; the library's own default is true
    /// Also give the hidden states after the last norm. Stock then computes every row of a batch,
    /// wanted or not, and a row count can change bits.
    bool embeddings = false;
    /// Called around nodes of the graph, as llama_context_params::cb_eval is.
    ggml_backend_sched_eval_callback on_node = nullptr;
    void* on_node_data = nullptr;
};

/// One row of a batch.
struct StockToken {
    llama_token token = 0;
    llama_pos pos = 0;
    llama_seq_id seq = 0;
    bool want = true;
};

/// `tokens` at consecutive positions from `first_pos` in one sequence.
std::vector<StockToken> stock_batch(std::span<const llama_token> tokens, llama_pos first_pos = 0,
                                    llama_seq_id seq = 0, bool want = true);

/// The wanted rows of one batch, in the batch's order.
struct StockRows {
    Logits logits;
    Logits hidden;  ///< [rows][n_embd]; empty unless StockSettings::embeddings
};

/// A llama_context; must not outlive its Stock.
class StockContext {
  public:
    /// Throws Error with stock's log when the status is not 0.
    StockRows decode(std::span<const StockToken> batch);
    /// llama_decode's status: 0 done, 1 no room in the cache, others as in llama.h. `rows` gets the
    /// wanted rows when it is 0. Throws Error when the batch is larger than the context's n_batch.
    int32_t try_decode(std::span<const StockToken> batch, StockRows& rows);

    /// Cells of `seq` with positions in [p0, p1); negative bounds are open, a negative `seq` is
    /// any. False when stock cannot remove that part.
    bool remove(llama_seq_id seq, llama_pos p0 = -1, llama_pos p1 = -1);
    void copy(llama_seq_id from, llama_seq_id to, llama_pos p0 = -1, llama_pos p1 = -1);
    void keep(llama_seq_id seq);
    void clear();
    llama_pos last_pos(llama_seq_id seq) const;  ///< -1: empty

    llama_context* get() const { return context_.get(); }

  private:
    friend class Stock;
    StockContext(llama_model* model, const StockSettings& settings);

    llama_context_ptr context_;
    size_t n_vocab_ = 0;
    size_t n_embd_ = 0;
    bool embeddings_ = false;
};

/// A model loaded by stock; what is not said is stock's default. Throws Error with stock's log.
class Stock {
  public:
    explicit Stock(const std::string& path, const StockModelSettings& settings = {});

    StockContext context(const StockSettings& settings = {}) const;

    llama_model* model() const { return model_.get(); }
    const llama_vocab* vocab() const { return llama_model_get_vocab(model_.get()); }
    int32_t n_vocab() const { return llama_vocab_n_tokens(vocab()); }
    int32_t n_embd() const { return llama_model_n_embd(model_.get()); }

  private:
    llama_model_ptr model_;
};

/// Logits of every token: the first `prefill` as one batch, the others one by one.
Logits stock_logits(StockContext& context, std::span<const llama_token> tokens, size_t prefill);
Logits stock_logits(const std::string& path, std::span<const llama_token> tokens, size_t prefill,
                    const StockSettings& settings = {},
                    const StockModelSettings& model_settings = {});

}  // namespace pleat::test
