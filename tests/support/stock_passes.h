#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "plan/shape.h"
#include "support/bits.h"
#include "support/stock.h"

namespace pleat::test {

/// Stock run pass by pass: the oracle of plans that no baked file can say.
///
/// Every pass has a context of its own on the model's file (or, where the pass has marks, on a
/// baked file in which its layer has them), so that K/V and states belong to the pass. A batch goes
/// through all of these contexts in turn. In each, the callback that stock calls after a node
/// replaces the hidden state in front of the pass's layer by what the pass before left, and takes
/// out what the layer makes of it; all other layers run too, and what they make of it is forgotten.
/// Where the layer reads another layer's K/V, the hidden state in front of that owner is replaced
/// as well, by what the owner's latest earlier pass began with; the owner then writes the same K/V
/// as that pass did. The last pass's result goes on to the final norm and the head.
///
/// So all that Pleat does between passes (order, slots, states, weights) is said here in other
/// words, and all that happens within one is stock's. Compares bit for bit where each batch is one
/// ubatch and all rows are wanted. A layer 0 that is not the first pass can only be run where the
/// model has no per-layer embeddings, which stock makes from what is replaced.
class StockPasses {
  public:
    StockPasses(const std::string& path, const LayerPlan& plan, const ModelShape& shape,
                const StockSettings& settings);
    ~StockPasses();

    /// At most one ubatch, of which all rows are wanted.
    Logits decode(std::span<const StockToken> batch);

  private:
    struct OnePass;
    std::map<std::string, std::unique_ptr<Stock>> stocks_;  ///< by the marks of a pass
    std::vector<std::unique_ptr<OnePass>> passes_;
};

}  // namespace pleat::test
