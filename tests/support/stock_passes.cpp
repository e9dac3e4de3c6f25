#include "support/stock_passes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "support/baked.h"

namespace pleat::test {
namespace {

using Hidden = std::vector<float>;  ///< [n_tokens][n_embd]

/// What stock calls the hidden state in front of a layer.
std::string name_in_front_of(int32_t layer, const ModelShape& shape) {
    if (layer > 0) return fmt::format("l_out-{}", layer - 1);
    if (shape.architecture.starts_with("gemma")) return "inp_scaled";
    return shape.architecture.starts_with("qwen35") ? "model.input_embed" : "embd";
}

std::string marks_of(const Pass& pass) {
    std::vector<std::string> marks;
    if (!pass.attention) marks.emplace_back("-attn");
    if (!pass.ffn) marks.emplace_back("-ffn");
    if (pass.scale != 1.0F) marks.push_back(fmt::format("scale={}", pass.scale));
    if (pass.qk_scale != 1.0F) marks.push_back(fmt::format("qk={}", pass.qk_scale));
    return marks.empty() ? "" : fmt::format("[{}]", fmt::join(marks, ","));
}

/// The identity plan with the pass's layer marked like the pass. Layers that would read K/V which
/// that leaves out lose their attention too: nobody asks what they compute.
std::string identity_with(const Pass& pass, const std::string& marks, const ModelShape& shape) {
    std::vector<std::string> items;
    for (int32_t i = 0; i < shape.n_layer; ++i) {
        const bool orphan =
            !pass.attention && shape.layers[static_cast<size_t>(i)].kv_owner == pass.layer;
        items.push_back(fmt::format("{}{}", i, i == pass.layer ? marks : orphan ? "[-attn]" : ""));
    }
    return fmt::format("layers:{}", fmt::join(items, ","));
}

/// What the callback takes out and replaces, by the names of stock's nodes. A node that is taken
/// before another is replaced may serve for that one.
struct Exchange {
    std::map<std::string, Hidden*> takes;
    std::map<std::string, const Hidden*> puts;
    size_t n_done = 0;

    bool wants(const std::string& name) const {
        return takes.contains(name) || puts.contains(name);
    }
    void exchange(ggml_tensor* tensor) {
        const std::string name = tensor->name;
        const auto n = static_cast<size_t>(ggml_nelements(tensor));
        if (const auto take = takes.find(name); take != takes.end()) {
            take->second->resize(n);
            ggml_backend_tensor_get(tensor, take->second->data(), 0, n * sizeof(float));
            ++n_done;
        }
        if (const auto put = puts.find(name); put != puts.end()) {
            if (put->second->size() != n) {
                fail("{} has {} values, not {}", name, n, put->second->size());
            }
            ggml_backend_tensor_set(tensor, put->second->data(), 0, n * sizeof(float));
            ++n_done;
        }
    }
};

bool on_node(ggml_tensor* tensor, bool ask, void* data) {
    auto& exchange = *static_cast<Exchange*>(data);
    if (ask) return exchange.wants(tensor->name);
    exchange.exchange(tensor);
    return true;
}

}  // namespace

struct StockPasses::OnePass {
    Hidden input;  ///< empty in a first pass of layer 0, which begins where stock does
    Hidden output;
    Exchange exchange;
    std::unique_ptr<StockContext> context;
};

StockPasses::StockPasses(const std::string& path, const LayerPlan& plan, const ModelShape& shape,
                         const StockSettings& settings) {
    for (size_t i = 0; i < plan.size(); ++i) {
        const Pass& pass = plan[i];
        passes_.push_back(std::make_unique<OnePass>());
        OnePass& one = *passes_.back();
        auto& [takes, puts, n_done] = one.exchange;
        const auto begin_with = [&](int32_t layer, const OnePass& begun, size_t begun_pass) {
            if (layer == 0 && begun_pass == 0) return;
            puts[name_in_front_of(layer, shape)] = &begun.input;
        };
        begin_with(pass.layer, one, i);
        if (i == 0 && pass.layer > 0) takes[name_in_front_of(0, shape)] = &one.input;
        takes[fmt::format("l_out-{}", pass.layer)] = &one.output;
        if (i + 1 == plan.size() && pass.layer + 1 < shape.n_layer) {
            puts[fmt::format("l_out-{}", shape.n_layer - 1)] = &one.output;
        }
        const int32_t owner = shape.layers[static_cast<size_t>(pass.layer)].kv_owner;
        if (owner >= 0 && pass.attention) {
            size_t owner_pass = i;
            for (size_t j = 0; j < i; ++j) {
                if (plan[j].layer == owner && plan[j].attention) owner_pass = j;
            }
            if (owner_pass == i) fail("pass {} has no owner before it", i);
            begin_with(owner, *passes_[owner_pass], owner_pass);
        }
        const std::string marks = marks_of(pass);
        auto& stock = stocks_[marks.empty() ? "" : fmt::format("{}{}", pass.layer, marks)];
        if (!stock) {
            const std::string spec = identity_with(pass, marks, shape);
            stock = std::make_unique<Stock>(marks.empty() ? path : bake_spec(path, spec).path());
        }
        StockSettings own = settings;
        own.on_node = on_node;
        own.on_node_data = &one.exchange;
        one.context = std::make_unique<StockContext>(stock->context(own));
    }
}

StockPasses::~StockPasses() = default;

Logits StockPasses::decode(std::span<const StockToken> batch) {
    Logits logits;
    for (size_t i = 0; i < passes_.size(); ++i) {
        OnePass& one = *passes_[i];
        if (i > 0) one.input = passes_[i - 1]->output;
        Exchange& exchange = one.exchange;
        exchange.n_done = 0;
        logits = one.context->decode(batch).logits;
        const size_t n = exchange.takes.size() + exchange.puts.size();
        if (exchange.n_done != n) {
            fail("pass {} met {} of {} nodes in stock's graph", i, exchange.n_done, n);
        }
    }
    return logits;
}

}  // namespace pleat::test
