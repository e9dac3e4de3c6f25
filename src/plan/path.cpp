#include "plan/path.h"

#include <algorithm>
#include <cstdlib>

#include "plan/grammar.h"
#include "plan/message.h"

namespace pleat {
namespace {

using Layers = std::vector<int32_t>;

void check_length(int64_t n_pass, const std::string& item, const Place& place,
                  const ModelShape& shape) {
    if (n_pass <= max_passes(shape)) return;
    fail_at(place, item, "makes the path longer than {} passes; a path has at most 8 x n_layer, {}",
            max_passes(shape), has_layers(shape));
}

/// The ends of an item of a list, in the order written.
std::pair<int32_t, int32_t> item_ends(const LayerItem& item, const ModelShape& shape) {
    const int64_t first = item.first.value_or(0);
    const int64_t last = item.last.value_or(int64_t{shape.n_layer} - 1);
    for (const int64_t layer : {first, last}) {
        if (layer >= 0 && layer < shape.n_layer) continue;
        fail_at(item.place, layer_of_item(layer, item),
                "is not in the model; {}, so layers are 0 to {}", has_layers(shape),
                shape.n_layer - 1);
    }
    return {static_cast<int32_t>(first), static_cast<int32_t>(last)};
}

/// What is left of the identity; `skipped` tells for every layer whether it was.
Layers without_skipped(const Spec& spec, const ModelShape& shape, std::vector<bool>& skipped) {
    const auto is_attention = [&](int32_t layer) {
        return shape.layers[static_cast<size_t>(layer)].role != Role::recurrent;
    };
    Layers left;
    Layers attention;
    for (int32_t layer = 0; layer < shape.n_layer; ++layer) {
        left.push_back(layer);
        if (is_attention(layer)) attention.push_back(layer);
    }
    size_t n_attention = attention.size();
    for (const LayerItem& item : spec.skip) {
        const LayerRange range = item_layers(item, shape);
        for (int32_t layer = range.begin; layer < range.end; ++layer) {
            if (skipped[static_cast<size_t>(layer)]) continue;
            skipped[static_cast<size_t>(layer)] = true;
            if (!is_attention(layer) || --n_attention > 0 || !shape.hybrid()) continue;
            fail_at(item.place, layer_of_item(layer, item),
                    "is the last attention layer that was left; a hybrid model keeps at least one "
                    "of its attention layers {}",
                    print_layers(attention));
        }
    }
    std::erase_if(left, [&](int32_t layer) { return skipped[static_cast<size_t>(layer)]; });
    if (left.empty()) {
        fail_at(spec.skip.back().place, "item " + print_item(spec.skip.back()),
                "leaves the path empty; {}, and at least one must be run", has_layers(shape));
    }
    return left;
}

void check_block(const RepeatBlock& block, const ModelShape& shape) {
    const bool outside = block.begin < 0 || block.end > shape.n_layer;
    if (!outside && block.begin < block.end) return;
    fail_at(block.place, "block " + print_block(block), "{}; {}, so 0 <= i < j <= {}",
            block.begin < 0            ? "starts before the first layer"
            : block.begin > block.end  ? "ends before it starts"
            : block.begin == block.end ? "is empty"
                                       : "ends after the last layer",
            has_layers(shape), shape.n_layer);
}

[[noreturn]] void fail_skipped_end(const RepeatBlock& block, const std::vector<bool>& skipped) {
    int64_t end = block.end;
    while (end > block.begin && skipped[static_cast<size_t>(end - 1)]) --end;
    const std::string instead = end > block.begin ? fmt::format("write {},{}", block.begin, end)
                                                  : fmt::format("layers {} to {} are all skipped",
                                                                block.begin, block.end - 1);
    fail_at(block.place, "block " + print_block(block),
            "ends with layer {}, which is skipped; a block goes right after its last layer, so {}",
            block.end - 1, instead);
}

void insert_block(Layers& path, const RepeatBlock& block, const std::vector<bool>& skipped,
                  const ModelShape& shape) {
    check_block(block, shape);
    if (block.traversals < 1) {
        fail_at(block.place, "block " + print_block(block), "has no traversal; N in xN is >= 1");
    }
    if (skipped[static_cast<size_t>(block.end - 1)]) fail_skipped_end(block, skipped);
    Layers copy;
    for (auto layer = static_cast<int32_t>(block.begin); layer < block.end; ++layer) {
        if (!skipped[static_cast<size_t>(layer)]) copy.push_back(layer);
    }
    const int64_t n_copy = block.traversals - 1;
    const auto length = static_cast<int64_t>(path.size());
    // More copies than passes are too many whatever their length, and might overflow the product.
    const int64_t longer =
        n_copy > max_passes(shape) ? n_copy : length + n_copy * static_cast<int64_t>(copy.size());
    check_length(longer, "block " + print_block(block), block.place, shape);
    Layers copies;
    for (int64_t i = 0; i < n_copy; ++i) copies.insert(copies.end(), copy.begin(), copy.end());
    // Every layer that is not skipped is in the path, so the search finds one.
    const auto last = std::find(path.rbegin(), path.rend(), copy.back());
    path.insert(last.base(), copies.begin(), copies.end());
}

Path explicit_path(const std::vector<LayerItem>& items, const ModelShape& shape) {
    Path path;
    for (const LayerItem& item : items) {
        const auto [first, last] = item_ends(item, shape);
        const int64_t count = std::abs(last - first) + 1;
        check_length(static_cast<int64_t>(path.passes.size()) + count, "item " + print_item(item),
                     item.place, shape);
        const int32_t step = first <= last ? 1 : -1;
        for (int32_t layer = first; layer != last + step; layer += step) {
            path.passes.push_back({.layer = layer,
                                   .slot = no_slot,
                                   .attention = item.marks.attention,
                                   .ffn = item.marks.ffn,
                                   .scale = item.marks.scale,
                                   .qk_scale = item.marks.qk_scale});
            path.items.push_back(&item);
        }
    }
    return path;
}

bool same_marks(const Pass& a, const Pass& b) {
    return a.attention == b.attention && a.ffn == b.ffn && a.scale == b.scale &&
           a.qk_scale == b.qk_scale;
}

}  // namespace

LayerRange item_layers(const LayerItem& item, const ModelShape& shape) {
    const auto [first, last] = item_ends(item, shape);
    return {std::min(first, last), std::max(first, last) + 1};
}

std::string layer_of_item(int64_t layer, const LayerItem& item) {
    const std::string name = print_item(item);
    const std::string plain = fmt::to_string(layer);
    return name == plain ? "layer " + plain : "layer " + plain + " of " + name;
}

Path build_path(const Spec& spec, const ModelShape& shape) {
    if (spec.layers) {
        if (!spec.repeat.empty() || !spec.skip.empty()) {
            fail("an explicit path of layers cannot be combined with repeats or skips");
        }
        return explicit_path(*spec.layers, shape);
    }
    std::vector<bool> skipped(static_cast<size_t>(shape.n_layer));
    Layers layers = without_skipped(spec, shape, skipped);
    for (const RepeatBlock& block : spec.repeat) insert_block(layers, block, skipped, shape);
    Path path;
    for (const int32_t layer : layers) path.passes.push_back({.layer = layer});
    return path;
}

int64_t max_passes(const ModelShape& shape) { return int64_t{8} * shape.n_layer; }

std::string print_path(const std::vector<Pass>& passes) {
    std::string out;
    for (size_t i = 0; i < passes.size();) {
        const Pass& first = passes[i];
        size_t last = i;
        // The second pass decides whether the range ascends or descends.
        while (last + 1 < passes.size() && same_marks(first, passes[last + 1])) {
            const int32_t step = passes[last + 1].layer - passes[last].layer;
            const int32_t direction = passes[i + 1].layer - first.layer;
            if (std::abs(step) != 1 || step != direction) break;
            ++last;
        }
        LayerItem item{.first = first.layer, .last = passes[last].layer, .marks = {}, .place = {}};
        item.marks = {first.attention, first.ffn, first.scale, first.qk_scale};
        if (!out.empty()) out += ',';
        out += print_item(item);
        i = last + 1;
    }
    return out;
}

std::string print_layers(const std::vector<int32_t>& layers) {
    std::vector<Pass> passes;
    for (const int32_t layer : layers) passes.push_back({.layer = layer});
    return print_path(passes);
}

}  // namespace pleat
