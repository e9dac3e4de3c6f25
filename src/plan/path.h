#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "plan/shape.h"
#include "plan/spec.h"

namespace pleat {

/// The passes on their way to a plan: still without slots.
struct Path {
    std::vector<Pass> passes;
    /// With `--layers`: the item that each pass came from; else empty. Borrowed from the spec.
    std::vector<const LayerItem*> items;
};

/// Layers [begin, end) of an item that names a.. b or b..a: source layers, ascending.
struct LayerRange {
    int32_t begin = 0;
    int32_t end = 0;
};

/// The layers of a set's item. Throws Error when one is not in the model.
LayerRange item_layers(const LayerItem& item, const ModelShape& shape);

/// "layer 5", or "layer 5 of 3..7" when the item names more: an item in a message.
std::string layer_of_item(int64_t layer, const LayerItem& item);

/// Skip and repeat, or the explicit path with its marks. Throws Error by the rules of
/// docs/plans.md; never allocates more than a path may have.
Path build_path(const Spec& spec, const ModelShape& shape);

/// The most passes that a path of this model may have.
int64_t max_passes(const ModelShape& shape);

/// Ranges where layers ascend or descend by one with equal marks: "0..33,26..33[-attn],34".
std::string print_path(const std::vector<Pass>& passes);

/// The same for bare layers: "3,7,11" or "0..4,6".
std::string print_layers(const std::vector<int32_t>& layers);

}  // namespace pleat
