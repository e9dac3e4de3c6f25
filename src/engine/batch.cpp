#include "engine/batch.h"

#include <algorithm>
#include <map>

namespace pleat {
namespace {

void append(Ubatch& ubatch, const BatchToken& token, size_t row) {
    if (token.output) ubatch.output_rows.push_back(static_cast<int32_t>(ubatch.tokens.size()));
    ubatch.tokens.push_back(token.token);
    ubatch.positions.push_back(token.position);
    ubatch.sequences.push_back(token.sequence);
    ubatch.batch_rows.push_back(static_cast<int32_t>(row));
}

std::vector<Ubatch> split_runs(std::span<const BatchToken> batch, uint32_t n_ubatch) {
    std::vector<Ubatch> ubatches;
    for (size_t i = 0; i < batch.size(); ++i) {
        if (i % n_ubatch == 0) ubatches.emplace_back();
        append(ubatches.back(), batch[i], i);
    }
    return ubatches;
}

std::vector<Ubatch> split_equal(std::span<const BatchToken> batch, uint32_t n_ubatch,
                                UbatchSplit split) {
    const bool consecutive = split == UbatchSplit::equal_consecutive;
    struct Pending {
        std::vector<size_t> rows;
        size_t next = 0;
        size_t left() const { return rows.size() - next; }
    };
    std::map<int32_t, Pending> pending;
    for (size_t i = 0; i < batch.size(); ++i) pending[batch[i].sequence].rows.push_back(i);

    std::vector<Ubatch> ubatches;
    std::vector<bool> done(batch.size());
    for (size_t start = 0; start < batch.size();) {
        if (done[start]) {
            ++start;
            continue;
        }
        // Stock lets one sequence too many in, and gives each at least one token.
        // Streams that run together are one view of the cache, so their ids must follow each other.
        std::vector<int32_t> sequences;
        for (size_t i = start; i < batch.size() && sequences.size() <= n_ubatch; ++i) {
            const int32_t sequence = batch[i].sequence;
            if (done[i] || std::ranges::find(sequences, sequence) != sequences.end()) continue;
            if (!consecutive || sequences.empty() || sequence == sequences.back() + 1) {
                sequences.push_back(sequence);
            }
        }
        size_t each = std::max<size_t>(1, n_ubatch / sequences.size());
        for (const int32_t s : sequences) each = std::min(each, pending[s].left());

        Ubatch& ubatch = ubatches.emplace_back();
        ubatch.n_seqs = static_cast<uint32_t>(sequences.size());
        if (consecutive) {
            ubatch.first_stream = static_cast<uint32_t>(sequences.front());
            ubatch.n_streams = ubatch.n_seqs;
        } else if (split == UbatchSplit::equal_streams) {
            ubatch.streams.assign(sequences.begin(), sequences.end());
            ubatch.n_streams = ubatch.n_seqs;
        }
        for (const int32_t s : sequences) {
            Pending& p = pending[s];
            for (size_t i = 0; i < each; ++i) {
                const size_t row = p.rows[p.next++];
                append(ubatch, batch[row], row);
                done[row] = true;
            }
        }
    }
    return ubatches;
}

}  // namespace

std::vector<Ubatch> split_ubatches(std::span<const BatchToken> batch, uint32_t n_ubatch,
                                   UbatchSplit split) {
    switch (split) {
        case UbatchSplit::runs:
            return split_runs(batch, n_ubatch);
        case UbatchSplit::equal:
        case UbatchSplit::equal_consecutive:
        case UbatchSplit::equal_streams:
            return split_equal(batch, n_ubatch, split);
    }
    return {};
}

}  // namespace pleat
