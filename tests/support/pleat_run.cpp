#include "support/pleat_run.h"

#include "arch/registry.h"
#include "base/error.h"

namespace pleat::test {

ContextSettings pleat_settings(const StockSettings& s) {
    ContextSettings settings;
    settings.cache.n_seq = s.n_seq_max;
    settings.cache.n_ctx = s.n_ctx / s.n_seq_max;
    settings.cache.n_ubatch = s.n_ubatch;
    settings.cache.kv_unified = s.kv_unified;
    settings.cache.swa_full = s.swa_full;
    settings.cache.type_k = cache_type(ggml_type_name(s.type_k));
    settings.cache.type_v = cache_type(ggml_type_name(s.type_v));
    settings.n_batch = s.n_batch;
    settings.n_threads = s.n_threads;
    settings.n_threads_batch = s.n_threads_batch;
    settings.flash_attention = s.flash_attn == LLAMA_FLASH_ATTN_TYPE_ENABLED ? FlashAttention::on
                               : s.flash_attn == LLAMA_FLASH_ATTN_TYPE_DISABLED
                                   ? FlashAttention::off
                                   : FlashAttention::automatic;
    return settings;
}

std::unique_ptr<Context> pleat_context(const std::string& path, const std::string& spec,
                                       const StockSettings& settings,
                                       const StockModelSettings& model_settings) {
    start_stock();  // one set of backends serves both sides
    const auto model = open_model(
        path, {.use_mmap = model_settings.mmap, .repack = model_settings.use_extra_bufts});
    LayerPlan plan = LayerPlan::resolve(parse_spec(spec), model->shape());
    return std::make_unique<Context>(model, std::move(plan), pleat_settings(settings));
}

Logits pleat_decode(Context& context, std::span<const StockToken> batch) {
    Batch tokens;
    for (const StockToken& t : batch) {
        tokens.push_back(
            {.token = t.token, .position = t.pos, .sequence = t.seq, .output = t.want});
    }
    if (context.decode(tokens) != DecodeStatus::ok) fail("pleat: the batch did not run");
    Logits rows{.n_vocab = context.n_vocab(), .values = {}};
    for (size_t i = 0; i < context.n_outputs(); ++i) {
        const auto logits = context.logits(i);
        rows.values.insert(rows.values.end(), logits.begin(), logits.end());
    }
    return rows;
}

Logits pleat_logits(Context& context, std::span<const llama_token> tokens, size_t prefill) {
    Logits logits = pleat_decode(context, stock_batch(tokens.first(prefill)));
    for (size_t i = prefill; i < tokens.size(); ++i) {
        logits.append(
            pleat_decode(context, stock_batch(tokens.subspan(i, 1), static_cast<llama_pos>(i))));
    }
    return logits;
}

Logits pleat_logits(const std::string& path, const std::string& spec,
                    std::span<const llama_token> tokens, size_t prefill,
                    const StockSettings& settings, const StockModelSettings& model_settings) {
    const auto context = pleat_context(path, spec, settings, model_settings);
    return pleat_logits(*context, tokens, prefill);
}

}  // namespace pleat::test
