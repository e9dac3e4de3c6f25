#include "support/side_by_side.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/pleat_run.h"
#include "support/random_tokens.h"

namespace pleat::test {

SideBySide::SideBySide(const std::string& path, const std::string& spec,
                       const std::string& stock_path, const StockSettings& settings)
    : stock_(stock_path),
      theirs_(stock_.context(settings)),
      ours_(pleat_context(path, spec, settings)),
      tokens_(random_tokens(11, 997, stock_.n_vocab())),
      lengths_(settings.n_seq_max) {}

void SideBySide::run(const std::vector<Part>& parts, const Wanted& wanted) {
    std::vector<StockToken> batch;
    for (const Part& part : parts) {
        int& length = lengths_.at(static_cast<size_t>(part.sequence));
        for (int i = 0; i < part.n_tokens; ++i) {
            batch.push_back({.token = tokens_[next_++ % tokens_.size()],
                             .pos = length++,
                             .seq = part.sequence,
                             .want = wanted.all});
        }
    }
    for (const size_t row : wanted.rows) batch.at(row).want = true;
    EXPECT_THAT(pleat_decode(*ours_, batch), BitIdenticalTo(theirs_.decode(batch).logits));
}

void SideBySide::step(const std::vector<int>& sequences, int n) {
    std::vector<Part> parts;
    for (const int sequence : sequences) parts.push_back({.sequence = sequence});
    for (int i = 0; i < n; ++i) run(parts);
}

void SideBySide::cut(int sequence, int length) {
    EXPECT_TRUE(theirs_.remove(sequence, length));
    ours_->remove(sequence, length);
    lengths_.at(static_cast<size_t>(sequence)) = length;
}

void SideBySide::copy(int from, int to) {
    theirs_.copy(from, to);
    ours_->copy(from, to);
    lengths_.at(static_cast<size_t>(to)) = length(from);
}

void SideBySide::clear() {
    theirs_.clear();
    ours_->clear();
    std::ranges::fill(lengths_, 0);
}

}  // namespace pleat::test
