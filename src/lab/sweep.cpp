#include "lab/sweep.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/units.h"

namespace pleat {

/// One call of run().
struct Sweep::Run {
    PassRunner& runner;
    const OnLogits& on_logits;
    const Progress& progress;
    uint64_t done = 0;
    uint64_t total = 0;
    bool stopped = false;

    void advance(size_t n) {
        done += n;
        if (progress && !progress(done, total)) stopped = true;
    }
};

Sweep::Sweep(std::shared_ptr<Model> model, std::vector<LayerPlan> plans, SweepSettings settings)
    : model_(std::move(model)), plans_(std::move(plans)), settings_(settings) {
    if (plans_.empty()) fail("no plan to run");
    plan_by_plan_ = !PassRunner::takes(*model_);
}

uint64_t Sweep::passes_per_item() const {
    return plan_by_plan_ ? passes_per_item_alone() : make_plan_tree(plans_).n_passes();
}

uint64_t Sweep::passes_per_item_alone() const {
    uint64_t n = 0;
    for (const LayerPlan& plan : plans_) n += plan.size();
    return n;
}

/// All plans at once if one sequence of each fits into the budget; else halves, each with the
/// reference, whose passes are then computed again.
std::vector<Sweep::Part> Sweep::parts(uint32_t n_tokens) const {
    const uint64_t stream_bytes = uint64_t{n_tokens} * model_->hparams().n_embd * sizeof(float);
    std::vector<Part> fitting;
    std::vector<std::vector<size_t>> open(1);
    for (size_t i = 1; i < plans_.size(); ++i) open.front().push_back(i);
    while (!open.empty()) {
        const std::vector<size_t> others = std::move(open.back());
        open.pop_back();
        Part part;
        part.plans.push_back(0);
        part.plans.insert(part.plans.end(), others.begin(), others.end());
        std::vector<LayerPlan> plans;
        for (const size_t i : part.plans) plans.push_back(plans_[i]);
        part.tree = make_plan_tree(plans);
        const uint64_t bytes = part.tree.peak_streams() * stream_bytes;
        if (bytes <= settings_.memory_budget) {
            fitting.push_back(std::move(part));
        } else if (others.size() < 2) {
            fail(
                "one sequence of {} tokens takes {} for its residual streams, more than the {} "
                "that were allowed",
                n_tokens, format_bytes(bytes), format_bytes(settings_.memory_budget));
        } else {
            const auto middle = others.begin() + static_cast<std::ptrdiff_t>(others.size() / 2);
            open.emplace_back(middle, others.end());
            open.emplace_back(others.begin(), middle);
        }
    }
    return fitting;
}

bool Sweep::run(std::span<const SweepItem> items, const OnLogits& on_logits, const OnDone& on_done,
                const Progress& progress) {
    if (items.empty()) return true;
    const size_t n_tokens = items.front().tokens.size();
    for (const SweepItem& item : items) {
        if (item.tokens.size() == n_tokens && !item.tokens.empty()) continue;
        fail("a sequence of {} tokens among sequences of {}", item.tokens.size(), n_tokens);
    }
    if (plan_by_plan_) return run_alone(items, on_logits, on_done, progress);

    const std::vector<Part> all = parts(static_cast<uint32_t>(n_tokens));
    ContextSettings context = settings_.context;
    context.cache.n_ctx = static_cast<uint32_t>(n_tokens);
    context.cache.n_seq =
        std::clamp<uint32_t>(settings_.rows_per_batch / context.cache.n_ctx, 1, max_sequences);
    PassRunner runner(model_, context);
    Run run{.runner = runner, .on_logits = on_logits, .progress = progress};
    for (const Part& part : all) run.total += part.tree.n_passes() * items.size();

    const uint64_t stream_bytes = runner.residual_size() * sizeof(float);
    for (size_t first = 0; first < items.size() && !run.stopped;) {
        // As many items together as keep all parts within the budget; no more than fill batches.
        size_t n = items.size() - first;
        for (const Part& part : all) {
            const uint64_t each = part.tree.peak_streams() * stream_bytes;
            n = std::min<size_t>(n, std::max<uint64_t>(1, settings_.memory_budget / each));
        }
        n = std::min<size_t>(n, runner.n_seq());
        for (const Part& part : all) {
            if (!run.stopped) run_part(part, items.subspan(first, n), first, run);
        }
        if (on_done) on_done(first, n);
        first += n;
    }
    return !run.stopped;
}

void Sweep::run_part(const Part& part, std::span<const SweepItem> items, size_t first_item,
                     Run& run) {
    PassRunner& runner = run.runner;
    const PlanTree& tree = part.tree;
    const size_t n_items = items.size();
    using Stream = std::vector<float>;
    // By node, then item; slot 0 is the embedding.
    std::vector<std::vector<Stream>> streams(tree.nodes.size() + 1);
    std::vector<size_t> readers(tree.nodes.size() + 1);
    const auto parent_of = [&](int32_t node) {
        return static_cast<size_t>(tree.nodes[static_cast<size_t>(node)].parent + 1);
    };
    for (size_t i = 0; i < tree.nodes.size(); ++i) ++readers[parent_of(static_cast<int32_t>(i))];
    size_t held = 0;
    const auto make = [&](size_t slot) {
        streams[slot].assign(n_items, Stream(runner.residual_size()));
        held += n_items;
        peak_bytes_ =
            std::max<uint64_t>(peak_bytes_, held * runner.residual_size() * sizeof(float));
    };

    make(0);
    std::vector<std::span<const int32_t>> tokens;
    std::vector<std::span<float>> embedded;
    for (size_t i = 0; i < n_items; ++i) {
        tokens.emplace_back(items[i].tokens);
        embedded.emplace_back(streams[0][i]);
    }
    runner.embed(tokens, embedded);

    struct Job {
        int32_t node;
        size_t item;
    };
    for (const PlanTree::Step& step : tree.steps) {
        std::vector<Job> jobs;
        for (const int32_t node : step.nodes) {
            if (!step.leaves) make(static_cast<size_t>(node) + 1);
            for (size_t i = 0; i < n_items; ++i) jobs.push_back({node, i});
        }
        const Pass& pass = tree.nodes[static_cast<size_t>(step.nodes.front())].pass;
        for (size_t at = 0; at < jobs.size() && !run.stopped; at += runner.n_seq()) {
            const auto batch =
                std::span(jobs).subspan(at, std::min<size_t>(runner.n_seq(), jobs.size() - at));
            std::vector<std::span<const float>> in;
            for (const Job& job : batch) in.emplace_back(streams[parent_of(job.node)][job.item]);
            if (step.leaves) {
                std::vector<std::span<const int32_t>> rows;
                for (const Job& job : batch) rows.emplace_back(items[job.item].rows);
                runner.finish(pass, in, rows, [&](size_t s, std::span<const float> logits) {
                    const PlanTree::Node& leaf = tree.nodes[static_cast<size_t>(batch[s].node)];
                    run.on_logits(part.plans[static_cast<size_t>(leaf.plan)],
                                  first_item + batch[s].item, logits);
                });
            } else {
                std::vector<std::span<float>> out;
                for (const Job& job : batch) {
                    out.emplace_back(streams[static_cast<size_t>(job.node) + 1][job.item]);
                }
                runner.run(pass, in, out);
            }
            run.advance(batch.size());
        }
        if (run.stopped) return;
        for (const int32_t node : step.nodes) {
            const size_t parent = parent_of(node);
            if (--readers[parent] > 0) continue;
            streams[parent] = {};
            held -= n_items;
        }
    }
}

bool Sweep::run_alone(std::span<const SweepItem> items, const OnLogits& on_logits,
                      const OnDone& on_done, const Progress& progress) {
    ContextSettings settings = settings_.context;
    CacheSettings& cache = settings.cache;
    cache.n_ctx = static_cast<uint32_t>(items.front().tokens.size());
    cache.n_seq = std::clamp<uint32_t>(settings_.rows_per_batch / cache.n_ctx, 1, max_sequences);
    cache.n_ubatch = cache.n_ctx * cache.n_seq;
    settings.n_batch = cache.n_ubatch;
    const uint64_t total = passes_per_item_alone() * items.size();
    uint64_t done = 0;
    for (size_t first = 0; first < items.size(); first += cache.n_seq) {
        const auto part = items.subspan(first, std::min<size_t>(cache.n_seq, items.size() - first));
        for (size_t p = 0; p < plans_.size(); ++p) {
            Context context(model_, plans_[p], settings);
            Batch batch;
            for (size_t s = 0; s < part.size(); ++s) {
                for (size_t i = 0; i < part[s].tokens.size(); ++i) {
                    const auto position = static_cast<int32_t>(i);
                    batch.push_back({.token = part[s].tokens[i],
                                     .position = position,
                                     .sequence = static_cast<int32_t>(s),
                                     .output = std::ranges::binary_search(part[s].rows, position)});
                }
            }
            if (context.decode(batch) != DecodeStatus::ok) fail("a sequence did not run");
            size_t row = 0;
            std::vector<float> logits;
            for (size_t s = 0; s < part.size(); ++s) {
                logits.clear();
                for (size_t i = 0; i < part[s].rows.size(); ++i) {
                    const auto one = context.logits(row++);
                    logits.insert(logits.end(), one.begin(), one.end());
                }
                on_logits(p, first + s, logits);
            }
            done += plans_[p].size() * part.size();
            if (progress && !progress(done, total)) return false;
        }
        if (on_done) on_done(first, part.size());
    }
    return true;
}

}  // namespace pleat
