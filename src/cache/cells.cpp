#include "cache/cells.h"

#include <algorithm>

namespace pleat {

Cells::Cells(uint32_t n_cells, uint32_t n_swa)
    : positions_(n_cells, -1),
      sequences_(n_cells),
      max_positions_(max_sequences, -1),
      n_swa_(n_swa) {}

bool Cells::usable(uint32_t cell) const {
    const int32_t position = positions_[cell];
    if (position < 0) return true;
    if (n_swa_ == 0 || sequences_[cell].count() != 1) return false;
    const auto sequence = static_cast<int32_t>(sequences_[cell]._Find_first());
    // Outside the window of the sequence's next token, so no later query can see it.
    return max_position(sequence) + 1 - position >= static_cast<int32_t>(n_swa_);
}

std::optional<std::vector<uint32_t>> Cells::find(uint32_t n) const {
    if (n > size()) return std::nullopt;
    // A head far beyond what is used would leave holes in front; start over.
    uint32_t head = head_ > used_ + 2 * n ? 0 : head_;
    std::vector<uint32_t> found;
    found.reserve(n);
    for (uint32_t tested = 0; found.size() < n; ++tested) {
        if (tested == size()) return std::nullopt;
        if (head >= size()) head = 0;
        if (usable(head)) found.push_back(head);
        ++head;
    }
    return found;
}

void Cells::set(std::span<const uint32_t> cells, std::span<const int32_t> positions,
                std::span<const int32_t> sequences) {
    for (size_t i = 0; i < cells.size(); ++i) {
        empty(cells[i]);
        positions_[cells[i]] = positions[i];
        const auto sequence = static_cast<size_t>(sequences[i]);
        sequences_[cells[i]].set(sequence);
        max_positions_[sequence] = std::max(max_positions_[sequence], positions[i]);
        longest_ = std::max(longest_, positions[i] + 1);
        ++used_;
        used_end_ = std::max(used_end_, cells[i] + 1);
    }
    if (!cells.empty()) head_ = cells.back() + 1;
}

void Cells::empty(uint32_t cell) {
    if (positions_[cell] < 0) return;
    positions_[cell] = -1;
    sequences_[cell].reset();
    --used_;
    while (used_end_ > 0 && positions_[used_end_ - 1] < 0) --used_end_;
}

bool Cells::holds(uint32_t cell, int32_t sequence, int32_t begin, int32_t end) const {
    const int32_t position = positions_[cell];
    return position >= 0 && position >= begin && position < end &&
           sequences_[cell].test(static_cast<size_t>(sequence));
}

uint32_t Cells::count(int32_t sequence, int32_t begin, int32_t end) const {
    uint32_t n = 0;
    for (uint32_t i = 0; i < size(); ++i) n += holds(i, sequence, begin, end) ? 1 : 0;
    return n;
}

void Cells::remove(int32_t sequence, int32_t begin, int32_t end) {
    uint32_t first_freed = size();
    for (uint32_t i = 0; i < size(); ++i) {
        if (!holds(i, sequence, begin, end)) continue;
        sequences_[i].reset(static_cast<size_t>(sequence));
        if (sequences_[i].none()) {
            empty(i);
            first_freed = std::min(first_freed, i);
        }
    }
    if (first_freed < head_) head_ = first_freed;
    update_max_position(sequence);
}

bool Cells::can_rewind(int32_t length) const {
    if (n_swa_ == 0 || length == 0) return true;
    // Tokens of one sequence go round the cells, so the last size() of them are still there.
    const int32_t oldest = std::max(0, longest_ - static_cast<int32_t>(size()));
    return std::max(0, length - static_cast<int32_t>(n_swa_) + 1) >= oldest;
}

void Cells::rewind(int32_t sequence, int32_t length) {
    const int32_t longest = length == 0 ? 0 : longest_;
    clear();
    const auto n_cells = static_cast<int32_t>(size());
    // Where a later token has been, the cell is said to hold what it held before: that is outside
    // of every window from here on, so that nobody looks at it.
    for (int32_t position = std::max(0, length - n_cells); position < length; ++position) {
        const auto cell = static_cast<uint32_t>(position % n_cells);
        set({&cell, 1}, {&position, 1}, {&sequence, 1});
    }
    longest_ = longest;
}

void Cells::share(int32_t from, int32_t to, int32_t begin, int32_t end) {
    for (uint32_t i = 0; i < size(); ++i) {
        if (holds(i, from, begin, end)) sequences_[i].set(static_cast<size_t>(to));
    }
    update_max_position(to);
}

void Cells::update_max_position(int32_t sequence) {
    int32_t& result = max_positions_[static_cast<size_t>(sequence)];
    result = -1;
    for (uint32_t i = 0; i < size(); ++i) {
        if (sequences_[i].test(static_cast<size_t>(sequence))) {
            result = std::max(result, positions_[i]);
        }
    }
}

void Cells::clear() { *this = Cells(size(), n_swa_); }

int32_t Cells::min_position(int32_t sequence) const {
    int32_t result = -1;
    for (uint32_t i = 0; i < size(); ++i) {
        if (!holds(i, sequence, 0, INT32_MAX)) continue;
        if (result < 0 || positions_[i] < result) result = positions_[i];
    }
    return result;
}

}  // namespace pleat
