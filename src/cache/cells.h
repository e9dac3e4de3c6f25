#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace pleat {

/// Sequence ids are 0 .. max_sequences - 1.
inline constexpr uint32_t max_sequences = 256;

/// Which token each cell (row) of one K/V stream holds: its position and the sequences it belongs
/// to. One layout serves all slots of a cache kind.
class Cells {
  public:
    /// n_swa: window in tokens, 0 for a full cache.
    Cells(uint32_t n_cells, uint32_t n_swa);

    static constexpr uint64_t bytes_per_cell = sizeof(int32_t) + max_sequences / 8;

    uint32_t size() const { return static_cast<uint32_t>(positions_.size()); }
    uint32_t n_free() const { return size() - used_; }

    /// Cells for `n` new tokens, in the order stock hands them out: from a running head on,
    /// wrapping around; usable are empty cells and, in a window cache, cells of one sequence only
    /// that have left its window. No value when there are not enough.
    std::optional<std::vector<uint32_t>> find(uint32_t n) const;

    /// Puts tokens into cells that find() returned.
    void set(std::span<const uint32_t> cells, std::span<const int32_t> positions,
             std::span<const int32_t> sequences);

    /// Takes positions [begin, end) from a sequence; cells that no sequence holds become empty.
    void remove(int32_t sequence, int32_t begin, int32_t end);

    /// Of the one sequence that these cells hold: is all there that a token at position `length`
    /// looks back to?
    bool can_rewind(int32_t length) const;
    /// Makes these cells what they were when the one sequence they hold had its first `length`
    /// tokens, so that what follows lies in the same cells as it did then: their order decides
    /// bits. Only where can_rewind(length).
    void rewind(int32_t sequence, int32_t length);

    /// Lets `to` share what `from` holds of [begin, end).
    void share(int32_t from, int32_t to, int32_t begin, int32_t end);
    void clear();

    /// Highest and lowest position a sequence holds, -1 when none.
    int32_t max_position(int32_t sequence) const {
        return max_positions_[static_cast<size_t>(sequence)];
    }
    int32_t min_position(int32_t sequence) const;

    /// Positions of [begin, end) that a sequence holds.
    uint32_t count(int32_t sequence, int32_t begin, int32_t end) const;

    /// Does a cell hold a token, and the same one as in `before`, an earlier state of these cells?
    bool holds_same(uint32_t cell, const Cells& before) const {
        return positions_[cell] >= 0 && positions_[cell] == before.positions_[cell] &&
               sequences_[cell] == before.sequences_[cell];
    }

    /// One past the last used cell: what a graph has to look at.
    uint32_t used_end() const { return used_end_; }

    /// May a query at `position` of `sequence` attend to this cell? Same sequence, not in the
    /// future, and inside the window (which counts the query itself).
    bool visible(uint32_t cell, int32_t sequence, int32_t position) const {
        const int32_t p = positions_[cell];
        return p >= 0 && p <= position && sequences_[cell].test(static_cast<size_t>(sequence)) &&
               (n_swa_ == 0 || position - p < static_cast<int32_t>(n_swa_));
    }

  private:
    using Sequences = std::bitset<max_sequences>;
    bool holds(uint32_t cell, int32_t sequence, int32_t begin, int32_t end) const;
    void empty(uint32_t cell);
    bool usable(uint32_t cell) const;
    void update_max_position(int32_t sequence);

    std::vector<int32_t> positions_;  ///< -1 = empty
    std::vector<Sequences> sequences_;
    std::vector<int32_t> max_positions_;  ///< by sequence
    uint32_t n_swa_ = 0;
    uint32_t head_ = 0;
    uint32_t used_ = 0;
    uint32_t used_end_ = 0;
    int32_t longest_ = 0;  ///< one past the highest position that was ever set
};

}  // namespace pleat
