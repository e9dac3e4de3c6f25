#include "serve/prompt_cache.h"

#include <algorithm>

namespace pleat {

PromptCache::PromptCache(Context& context, int32_t sequence, size_t chunk, size_t n_snapshots)
    : context_(context), sequence_(sequence), chunk_(chunk), n_snapshots_(n_snapshots) {}

size_t PromptCache::reusable(std::span<const int32_t> prompt) const {
    if (prompt.empty()) return 0;
    const size_t most = std::min(n_exact_, prompt.size() - 1);
    const auto differs = std::mismatch(
        prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(most), tokens_.begin());
    size_t n = static_cast<size_t>(differs.first - prompt.begin()) / chunk_ * chunk_;
    // Without recurrent layers: if the window is gone at n, it is also gone before.
    for (; n > 0; n -= chunk_) {
        const Snapshot* const snapshot = snapshot_at(n);
        if (context_.can_rewind(sequence_, static_cast<int32_t>(n), snapshot)) return n;
        if (!context_.has_states()) return 0;
    }
    return 0;
}

const Snapshot* PromptCache::snapshot_at(size_t n) const {
    const auto length = static_cast<int32_t>(n);
    const auto found = std::ranges::find_if(
        snapshots_, [&](const auto& snapshot) { return snapshot->length == length; });
    return found == snapshots_.end() ? nullptr : found->get();
}

void PromptCache::rewind(size_t n) {
    context_.rewind(sequence_, static_cast<int32_t>(n), snapshot_at(n));
    tokens_.resize(n);
    n_exact_ = std::min(n_exact_, n);
    std::erase_if(snapshots_,
                  [&](const auto& snapshot) { return static_cast<size_t>(snapshot->length) > n; });
}

void PromptCache::adopt(const PromptCache& other, size_t n) {
    rewind(0);
    context_.copy(other.sequence_, sequence_);
    tokens_.assign(other.tokens_.begin(), other.tokens_.begin() + static_cast<std::ptrdiff_t>(n));
    n_exact_ = n;
    snapshots_ = other.snapshots_;
    rewind(n);
}

void PromptCache::append(std::span<const int32_t> tokens) {
    const bool whole = tokens.size() == chunk_ && tokens_.size() == n_exact_;
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    if (!whole) return;
    n_exact_ += chunk_;
    if (context_.has_states()) keep_snapshot();
}

/// The newest one always, and of the others those that lie farthest apart.
void PromptCache::keep_snapshot() {
    if (n_snapshots_ == 0) return;
    snapshots_.push_back(std::make_shared<const Snapshot>(context_.snapshot(sequence_)));
    if (snapshots_.size() <= n_snapshots_) return;
    size_t crowded = 0;
    int32_t narrowest = INT32_MAX;
    for (size_t i = 0; i + 1 < snapshots_.size(); ++i) {
        const int32_t before = i == 0 ? 0 : snapshots_[i - 1]->length;
        const int32_t gap = snapshots_[i + 1]->length - before;
        if (gap >= narrowest) continue;
        narrowest = gap;
        crowded = i;
    }
    snapshots_.erase(snapshots_.begin() + static_cast<std::ptrdiff_t>(crowded));
}

}  // namespace pleat
