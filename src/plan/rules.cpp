#include "plan/rules.h"

#include <algorithm>

#include "plan/grammar.h"
#include "plan/message.h"

namespace pleat {
namespace {

const LayerShape& layer_shape(const ModelShape& shape, int32_t layer) {
    return shape.layers[static_cast<size_t>(layer)];
}

template <typename Condition>
std::vector<int32_t> layers_where(const ModelShape& shape, Condition condition) {
    std::vector<int32_t> layers;
    for (int32_t layer = 0; layer < shape.n_layer; ++layer) {
        if (condition(layer_shape(shape, layer))) layers.push_back(layer);
    }
    return layers;
}

std::string droppable_layers(const ModelShape& shape) {
    return print_layers(
        layers_where(shape, [](const LayerShape& layer) { return droppable(layer.role); }));
}

bool runs_attention(const Pass& pass, const ModelShape& shape) {
    return pass.attention && layer_shape(shape, pass.layer).role != Role::recurrent;
}

bool any_attention(const Path& path, const ModelShape& shape) {
    return std::ranges::any_of(path.passes,
                               [&](const Pass& pass) { return runs_attention(pass, shape); });
}

[[noreturn]] void fail_not_in_path(int32_t layer, const LayerItem& item, const Path& path) {
    std::vector<int32_t> layers;
    for (const Pass& pass : path.passes) layers.push_back(pass.layer);
    std::ranges::sort(layers);
    layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
    fail_at(item.place, layer_of_item(layer, item),
            "is not in the path; the layers that are run are {}", print_layers(layers));
}

std::vector<Pass*> passes_of(int32_t layer, const LayerItem& item, Path& path) {
    std::vector<Pass*> passes;
    for (Pass& pass : path.passes) {
        if (pass.layer == layer) passes.push_back(&pass);
    }
    if (passes.empty()) fail_not_in_path(layer, item, path);
    return passes;
}

/// Calls with every layer of a set once, and with the item that names it first.
template <typename Call>
void for_each_layer(const std::vector<LayerItem>& set, const ModelShape& shape, Call call) {
    std::vector<bool> seen(shape.layers.size());
    for (const LayerItem& item : set) {
        const LayerRange range = item_layers(item, shape);
        for (int32_t layer = range.begin; layer < range.end; ++layer) {
            const auto i = static_cast<size_t>(layer);
            if (!seen[i]) call(layer, item);
            seen[i] = true;
        }
    }
}

[[noreturn]] void fail_not_droppable(int32_t layer, const LayerItem& item,
                                     const ModelShape& shape) {
    const std::string layers = droppable_layers(shape);
    fail_at(item.place, layer_of_item(layer, item), "is {} and cannot lose its attention; {}",
            role_name(layer_shape(shape, layer).role),
            layers.empty() ? "no layer of this model can"
                           : "the layers of this model that can are " + layers);
}

[[noreturn]] void fail_last_attention(int32_t layer, const LayerItem& item,
                                      const ModelShape& shape) {
    fail_at(item.place, layer_of_item(layer, item),
            "is the last attention layer that was left; a hybrid model keeps at least one of its "
            "attention layers {}",
            droppable_layers(shape));
}

/// The drop that took the owner's attention away, or the skip that took the owner.
const LayerItem* item_that_names(int32_t layer, const std::vector<LayerItem>& items,
                                 const ModelShape& shape) {
    for (const LayerItem& item : items) {
        const LayerRange range = item_layers(item, shape);
        if (layer >= range.begin && layer < range.end) return &item;
    }
    return nullptr;
}

/// The layers that would read the owner's K/V and find none before them, in the order of the path.
std::vector<int32_t> orphans_of(int32_t owner, const Path& path, const ModelShape& shape) {
    std::vector<int32_t> orphans;
    bool written = false;
    for (const Pass& pass : path.passes) {
        if (pass.layer == owner && pass.attention) written = true;
        const LayerShape& layer = layer_shape(shape, pass.layer);
        if (written || layer.role != Role::shared_kv_attention || layer.kv_owner != owner) continue;
        if (!pass.attention || std::ranges::count(orphans, pass.layer) > 0) continue;
        orphans.push_back(pass.layer);
    }
    return orphans;
}

[[noreturn]] void fail_orphan(size_t consumer, const Path& path, const Spec& spec,
                              const ModelShape& shape) {
    const int32_t layer = path.passes[consumer].layer;
    const int32_t owner = layer_shape(shape, layer).kv_owner;
    const std::vector<int32_t> orphans = orphans_of(owner, path, shape);
    const char* const plural = orphans.size() == 1 ? "" : "s";
    const char* const verb = orphans.size() == 1 ? "reads" : "read";
    if (const LayerItem* item = item_that_names(owner, spec.drop_attention, shape)) {
        fail_at(item->place, layer_of_item(owner, *item),
                "owns the K/V that layer{} {} {}; keep its attention, or drop theirs too", plural,
                print_layers(orphans), verb);
    }
    if (const LayerItem* item = item_that_names(owner, spec.skip, shape)) {
        fail_at(item->place, layer_of_item(owner, *item),
                "owns the K/V that layer{} {} {}; keep it, or skip them or drop their attention "
                "too",
                plural, print_layers(orphans), verb);
    }
    // Without skips the owner of an implicit path comes first, so this is an explicit one.
    const LayerItem& item = *path.items[consumer];
    fail_at(item.place, layer_of_item(layer, item),
            "reads the K/V of layer {}, and no earlier pass of that has attention; put layer {} "
            "before it, or write {}[-attn]",
            owner, owner, layer);
}

void check_hybrid(const Path& path, const ModelShape& shape) {
    if (!shape.hybrid() || any_attention(path, shape)) return;
    for (size_t i = path.passes.size(); i-- > 0;) {
        const Pass& pass = path.passes[i];
        if (droppable(layer_shape(shape, pass.layer).role)) {
            fail_last_attention(pass.layer, *path.items[i], shape);
        }
    }
    const LayerItem& last = *path.items.back();
    fail_at(last.place, "item " + print_item(last),
            "ends a path without attention layers; a hybrid model keeps at least one of its "
            "attention layers {}",
            droppable_layers(shape));
}

void check_shared_kv(const Path& path, const Spec& spec, const ModelShape& shape) {
    std::vector<bool> written(shape.layers.size());
    for (size_t i = 0; i < path.passes.size(); ++i) {
        const Pass& pass = path.passes[i];
        const LayerShape& layer = layer_shape(shape, pass.layer);
        if (!pass.attention) continue;
        if (owns_kv(layer.role)) written[static_cast<size_t>(pass.layer)] = true;
        if (layer.role != Role::shared_kv_attention) continue;
        if (!written[static_cast<size_t>(layer.kv_owner)]) fail_orphan(i, path, spec, shape);
    }
}

void check_qk_scales(const Path& path, const ModelShape& shape) {
    for (size_t i = 0; i < path.passes.size(); ++i) {
        const Pass& pass = path.passes[i];
        if (pass.qk_scale == 1.0F || runs_attention(pass, shape)) continue;
        const LayerItem& item = *path.items[i];
        fail_at(item.place, layer_of_item(pass.layer, item),
                "{}; a qk factor needs a pass with attention",
                pass.attention ? "is recurrent" : "has no attention in this pass");
    }
}

}  // namespace

void apply_drops(Path& path, const Spec& spec, const ModelShape& shape) {
    const bool had_attention = any_attention(path, shape);
    for_each_layer(spec.drop_attention, shape, [&](int32_t layer, const LayerItem& item) {
        const std::vector<Pass*> passes = passes_of(layer, item, path);
        if (!droppable(layer_shape(shape, layer).role)) fail_not_droppable(layer, item, shape);
        for (Pass* pass : passes) pass->attention = false;
        if (shape.hybrid() && had_attention && !any_attention(path, shape)) {
            fail_last_attention(layer, item, shape);
        }
    });
    for_each_layer(spec.drop_ffn, shape, [&](int32_t layer, const LayerItem& item) {
        for (Pass* pass : passes_of(layer, item, path)) pass->ffn = false;
    });
}

void check_path(const Path& path, const Spec& spec, const ModelShape& shape) {
    for (size_t i = 0; i < path.passes.size(); ++i) {
        const Pass& pass = path.passes[i];
        if (!pass.attention && !droppable(layer_shape(shape, pass.layer).role)) {
            fail_not_droppable(pass.layer, *path.items[i], shape);
        }
    }
    check_hybrid(path, shape);
    check_shared_kv(path, spec, shape);
    check_qk_scales(path, shape);
}

}  // namespace pleat
