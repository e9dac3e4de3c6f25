#include "lab/prefill.h"

#include <algorithm>
#include <utility>

#include "cache/cells.h"

namespace pleat {

Prefill::Prefill(std::shared_ptr<Model> model, const std::vector<LayerPlan>& plans,
                 ContextSettings settings, uint32_t n_ctx, uint32_t rows_per_batch)
    : model_(std::move(model)),
      settings_(settings),
      n_ctx_(n_ctx),
      rows_per_batch_(rows_per_batch),
      tree_(make_plan_tree(plans)),
      passages_(tree_.nodes.size()) {
    for (const PlanTree::Step& step : tree_.steps) {
        widest_step_ = std::max(widest_step_, step.nodes.size());
    }
    for (size_t leaf = 0; leaf < tree_.nodes.size(); ++leaf) {
        if (tree_.nodes[leaf].plan == PlanTree::none) continue;
        const auto plan = static_cast<size_t>(tree_.nodes[leaf].plan);
        auto node = static_cast<int32_t>(leaf);
        for (size_t index = plans[plan].size(); index-- > 0;) {
            passages_[static_cast<size_t>(node)].push_back({plan, index});
            node = tree_.nodes[static_cast<size_t>(node)].parent;
        }
    }
}

uint32_t Prefill::n_together(size_t n_tokens) const {
    const size_t most = std::min<size_t>(widest_step_, max_sequences);
    return static_cast<uint32_t>(std::clamp<size_t>(rows_per_batch_ / n_tokens, 1, most));
}

ContextSettings Prefill::runner_settings(size_t n_tokens) const {
    ContextSettings settings = settings_;
    settings.cache.n_ctx = static_cast<uint32_t>(n_tokens);
    settings.cache.n_seq = n_together(n_tokens);
    return settings;
}

uint64_t Prefill::bytes(size_t n_tokens) const {
    const uint64_t stream = uint64_t{n_tokens} * model_->hparams().n_embd * sizeof(float);
    return tree_.peak_streams() * stream +
           PassRunner::cache_bytes(*model_, runner_settings(n_tokens));
}

void Prefill::run(std::span<const int32_t> prompt, const Receiver& receiver) {
    using Stream = std::vector<float>;
    PassRunner runner(model_, runner_settings(prompt.size()), n_ctx_);
    // By node; slot 0 is the embedding.
    std::vector<Stream> streams(tree_.nodes.size() + 1);
    std::vector<size_t> readers(tree_.nodes.size() + 1);
    const auto parent_of = [&](int32_t node) {
        return static_cast<size_t>(tree_.nodes[static_cast<size_t>(node)].parent + 1);
    };
    for (size_t i = 0; i < tree_.nodes.size(); ++i) ++readers[parent_of(static_cast<int32_t>(i))];
    streams[0].resize(runner.residual_size());
    runner.embed(std::span(&prompt, 1), std::vector<std::span<float>>{streams[0]});

    const std::vector<int32_t> last{static_cast<int32_t>(prompt.size()) - 1};
    size_t held = 1;
    for (const PlanTree::Step& step : tree_.steps) {
        const Pass& pass = tree_.nodes[static_cast<size_t>(step.nodes.front())].pass;
        for (size_t at = 0; at < step.nodes.size(); at += runner.n_seq()) {
            const auto nodes =
                std::span(step.nodes)
                    .subspan(at, std::min<size_t>(runner.n_seq(), step.nodes.size() - at));
            std::vector<std::span<const float>> in;
            for (const int32_t node : nodes) in.emplace_back(streams[parent_of(node)]);
            if (step.leaves) {
                const std::vector<std::span<const int32_t>> rows(nodes.size(), last);
                runner.finish(pass, in, rows, [&](size_t s, std::span<const float> logits) {
                    const PlanTree::Node& leaf = tree_.nodes[static_cast<size_t>(nodes[s])];
                    receiver.on_logits(static_cast<size_t>(leaf.plan), logits);
                });
            } else {
                std::vector<std::span<float>> out;
                for (const int32_t node : nodes) {
                    Stream& stream = streams[static_cast<size_t>(node) + 1];
                    stream.resize(runner.residual_size());
                    out.emplace_back(stream);
                    ++held;
                }
                runner.run(pass, in, out);
            }
            peak_bytes_ = std::max<uint64_t>(
                peak_bytes_, held * runner.residual_size() * sizeof(float) + runner.buffer_bytes());
            for (size_t s = 0; s < nodes.size(); ++s) {
                for (const Passage& p : passages_[static_cast<size_t>(nodes[s])]) {
                    receiver.on_pass(p.plan, p.index, runner, s);
                }
            }
        }
        for (const int32_t node : step.nodes) {
            const size_t parent = parent_of(node);
            if (--readers[parent] > 0) continue;
            streams[parent] = {};
            --held;
        }
    }
}

}  // namespace pleat
