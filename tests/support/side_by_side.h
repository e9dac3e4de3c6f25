#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/context.h"
#include "support/stock.h"

namespace pleat::test {

/// A number of random tokens for one sequence, at its end.
struct Part {
    int sequence = 0;
    int n_tokens = 1;
};

/// Which rows of a batch are wanted: all, or those whose number in the batch is listed.
struct Wanted {
    bool all = true;
    std::vector<size_t> rows{};
};

/// Pleat and stock in step: the same batches to both, logits compared bit for bit after each, and
/// whatever is removed or copied on one side is on the other.
class SideBySide {
  public:
    /// A file under SPEC (empty: identity) beside stock on `stock_path`.
    SideBySide(const std::string& path, const std::string& spec, const std::string& stock_path,
               const StockSettings& settings);
    /// The identity plan and stock on one file.
    SideBySide(const std::string& path, const StockSettings& settings)
        : SideBySide(path, "", path, settings) {}

    /// One batch: the parts' tokens one after another.
    void run(const std::vector<Part>& parts, const Wanted& wanted = {});
    /// `n` batches of one token of each of these sequences.
    void step(const std::vector<int>& sequences, int n = 1);

    /// Cuts a sequence to its first `length` positions.
    void cut(int sequence, int length);
    void remove(int sequence) { cut(sequence, 0); }
    void copy(int from, int to);
    void clear();

    Context& ours() { return *ours_; }
    int length(int sequence) const { return lengths_.at(static_cast<size_t>(sequence)); }

  private:
    Stock stock_;
    StockContext theirs_;
    std::unique_ptr<Context> ours_;
    std::vector<int32_t> tokens_;
    size_t next_ = 0;
    std::vector<int> lengths_;
};

}  // namespace pleat::test
