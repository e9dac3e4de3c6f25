#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "engine/context.h"
#include "support/bits.h"
#include "support/stock.h"

/// Pleat's side of a comparison, made from the same settings as stock's.
namespace pleat::test {

/// The same settings in Pleat's words. Stock divides n_ctx among its sequences; Pleat's n_ctx is
/// one sequence's.
ContextSettings pleat_settings(const StockSettings& settings);

/// A context of the file under the plan that SPEC says (empty: identity).
std::unique_ptr<Context> pleat_context(const std::string& path, const std::string& spec = "",
                                       const StockSettings& settings = {},
                                       const StockModelSettings& model_settings = {});

/// One batch; fails the test's process with an Error unless it ran. Wanted rows in batch order.
Logits pleat_decode(Context& context, std::span<const StockToken> batch);

/// Logits of every token: the first `prefill` as one batch, the others one by one.
Logits pleat_logits(Context& context, std::span<const llama_token> tokens, size_t prefill);
Logits pleat_logits(const std::string& path, const std::string& spec,
                    std::span<const llama_token> tokens, size_t prefill,
                    const StockSettings& settings = {},
                    const StockModelSettings& model_settings = {});

}  // namespace pleat::test
