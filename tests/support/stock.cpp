#include "support/stock.h"

#include <ggml-backend.h>

#include <cstdlib>
#include <mutex>

#include "base/error.h"

namespace pleat::test {
namespace {

// Variables that change bits. ggml reads them when a backend starts or first computes, which may be
// before any test asks for stock, so they are cleared before main.
const bool environment_cleared = [] {
    for (const char* name :
         {"GGML_CPU_TILED_MM", "GGML_CPU_TILED_MM_FORCE", "GGML_CPU_DISABLE_FUSION",
          "GGML_BACKEND_PATH", "LLAMA_ATTN_ROT_DISABLE", "LLAMA_GRAPH_REUSE_DISABLE"}) {
        unsetenv(name);
    }
    return true;
}();

class Log {
  public:
    void add(ggml_log_level level, const char* text) {
        const std::lock_guard lock(mutex_);
        // Debug lines name every input of every graph; the rest of a split line has no level.
        if (level != GGML_LOG_LEVEL_CONT) keep_ = level != GGML_LOG_LEVEL_DEBUG;
        if (!keep_) return;
        text_ += text;
        if (text_.size() > 2 * kept) text_.erase(0, text_.size() - kept);
    }
    std::string text() const {
        const std::lock_guard lock(mutex_);
        return text_;
    }
    void clear() {
        const std::lock_guard lock(mutex_);
        text_.clear();
    }

  private:
    static constexpr size_t kept = 1U << 17U;
    mutable std::mutex mutex_;
    std::string text_;
    bool keep_ = true;
};

Log& log() {
    static Log instance;
    return instance;
}

template <typename... Args>
[[noreturn]] void fail_with_log(fmt::format_string<Args...> format, Args&&... args) {
    throw Error(fmt::format(format, std::forward<Args>(args)...) + "; stock's log:\n" +
                log().text());
}

/// llama_batch with one sequence a token, on vectors.
class Batch {
  public:
    explicit Batch(std::span<const StockToken> rows) {
        for (const StockToken& row : rows) {
            tokens_.push_back(row.token);
            positions_.push_back(row.pos);
            counts_.push_back(1);
            sequences_.push_back(row.seq);
            wanted_.push_back(row.want ? 1 : 0);
        }
        for (llama_seq_id& sequence : sequences_) pointers_.push_back(&sequence);
    }
    llama_batch view() {
        return {.n_tokens = static_cast<int32_t>(tokens_.size()),
                .token = tokens_.data(),
                .embd = nullptr,
                .pos = positions_.data(),
                .n_seq_id = counts_.data(),
                .seq_id = pointers_.data(),
                .logits = wanted_.data()};
    }

  private:
    std::vector<llama_token> tokens_;
    std::vector<llama_pos> positions_;
    std::vector<int32_t> counts_;
    std::vector<llama_seq_id> sequences_;
    std::vector<llama_seq_id*> pointers_;
    std::vector<int8_t> wanted_;
};

void append_row(Logits& to, const float* row, const char* what, size_t index) {
    if (row == nullptr) fail_with_log("stock has no {} for row {} of the batch", what, index);
    to.values.insert(to.values.end(), row, row + to.n_vocab);
}

}  // namespace

void start_stock() {
    static std::once_flag once;
    std::call_once(once, [] {
        llama_log_set([](ggml_log_level level, const char* text, void*) { log().add(level, text); },
                      nullptr);
        const std::string directory = PLEAT_BACKEND_DIR;
        // Loading them a second time would give every device twice.
        if (ggml_backend_dev_count() == 0) {
            if (directory.empty()) {
                ggml_backend_load_all();
            } else {
                ggml_backend_load_all_from_path(directory.c_str());
            }
        }
        llama_backend_init();
        if (ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU) == nullptr) {
            fail_with_log("no CPU backend found in {}",
                          directory.empty() ? "ggml's own path" : directory);
        }
    });
}

std::string stock_log() { return log().text(); }

std::vector<StockToken> stock_batch(std::span<const llama_token> tokens, llama_pos first_pos,
                                    llama_seq_id seq, bool want) {
    std::vector<StockToken> batch;
    for (const llama_token token : tokens) {
        batch.push_back({.token = token,
                         .pos = first_pos + static_cast<llama_pos>(batch.size()),
                         .seq = seq,
                         .want = want});
    }
    return batch;
}

Stock::Stock(const std::string& path, const StockModelSettings& settings) {
    start_stock();
    log().clear();
    llama_model_params params = llama_model_default_params();
    params.use_extra_bufts = settings.use_extra_bufts;
    params.load_mode = settings.mmap ? LLAMA_LOAD_MODE_MMAP : LLAMA_LOAD_MODE_NONE;
    model_.reset(llama_model_load_from_file(path.c_str(), params));
    if (!model_) fail_with_log("stock cannot load {}", path);
}

StockContext Stock::context(const StockSettings& settings) const {
    return {model_.get(), settings};
}

StockContext::StockContext(llama_model* model, const StockSettings& settings)
    : n_vocab_(static_cast<size_t>(llama_vocab_n_tokens(llama_model_get_vocab(model)))),
      n_embd_(static_cast<size_t>(llama_model_n_embd(model))),
      embeddings_(settings.embeddings) {
    llama_context_params params = llama_context_default_params();
    params.n_ctx = settings.n_ctx;
    params.n_batch = settings.n_batch;
    params.n_ubatch = settings.n_ubatch;
    params.n_seq_max = settings.n_seq_max;
    params.n_threads = settings.n_threads;
    params.n_threads_batch = settings.n_threads_batch;
    params.flash_attn_type = settings.flash_attn;
    params.type_k = settings.type_k;
    params.type_v = settings.type_v;
    params.kv_unified = settings.kv_unified;
    params.swa_full = settings.swa_full;
    params.embeddings = settings.embeddings;
    params.cb_eval = settings.on_node;
    params.cb_eval_user_data = settings.on_node_data;
    context_.reset(llama_init_from_model(model, params));
    if (!context_) fail_with_log("stock cannot make a context of {} tokens", settings.n_ctx);
}

int32_t StockContext::try_decode(std::span<const StockToken> batch, StockRows& rows) {
    // Stock would end the process over this one.
    if (batch.size() > llama_n_batch(context_.get())) {
        fail("a batch of {} tokens for a context that takes {}", batch.size(),
             llama_n_batch(context_.get()));
    }
    Batch copy(batch);
    const int32_t status = llama_decode(context_.get(), copy.view());
    if (status != 0) return status;
    rows = {.logits = {.n_vocab = n_vocab_, .values = {}},
            .hidden = {.n_vocab = n_embd_, .values = {}}};
    for (size_t i = 0; i < batch.size(); ++i) {
        if (!batch[i].want) continue;
        const auto index = static_cast<int32_t>(i);
        append_row(rows.logits, llama_get_logits_ith(context_.get(), index), "logits", i);
        if (embeddings_) {
            append_row(rows.hidden, llama_get_embeddings_ith(context_.get(), index), "hidden state",
                       i);
        }
    }
    return 0;
}

StockRows StockContext::decode(std::span<const StockToken> batch) {
    StockRows rows;
    const int32_t status = try_decode(batch, rows);
    if (status != 0) {
        fail_with_log("stock refuses a batch of {} tokens with status {}", batch.size(), status);
    }
    return rows;
}

bool StockContext::remove(llama_seq_id seq, llama_pos p0, llama_pos p1) {
    return llama_memory_seq_rm(llama_get_memory(context_.get()), seq, p0, p1);
}

void StockContext::copy(llama_seq_id from, llama_seq_id to, llama_pos p0, llama_pos p1) {
    llama_memory_seq_cp(llama_get_memory(context_.get()), from, to, p0, p1);
}

void StockContext::keep(llama_seq_id seq) {
    llama_memory_seq_keep(llama_get_memory(context_.get()), seq);
}

void StockContext::clear() { llama_memory_clear(llama_get_memory(context_.get()), true); }

llama_pos StockContext::last_pos(llama_seq_id seq) const {
    return llama_memory_seq_pos_max(llama_get_memory(context_.get()), seq);
}

Logits stock_logits(StockContext& context, std::span<const llama_token> tokens, size_t prefill) {
    Logits logits;
    if (prefill > 0) logits = context.decode(stock_batch(tokens.first(prefill))).logits;
    for (size_t i = prefill; i < tokens.size(); ++i) {
        const StockToken token{.token = tokens[i], .pos = static_cast<llama_pos>(i)};
        logits.append(context.decode({&token, 1}).logits);
    }
    return logits;
}

Logits stock_logits(const std::string& path, std::span<const llama_token> tokens, size_t prefill,
                    const StockSettings& settings, const StockModelSettings& model_settings) {
    const Stock stock(path, model_settings);
    StockContext context = stock.context(settings);
    return stock_logits(context, tokens, prefill);
}

}  // namespace pleat::test
