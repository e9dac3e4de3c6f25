#include "serve/engine.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "generate/generate.h"
#include "serve/engine_loop.h"

namespace pleat {
namespace {

ContextSettings completed(ContextSettings settings) {
    if (settings.cache.kv_unified) {
        fail("a server slot has a cache of its own: a unified K/V cache is not possible");
    }
    settings.attend_apart = true;
    settings.n_batch = std::max({settings.n_batch, settings.cache.n_ubatch, settings.cache.n_seq});
    return settings;
}

void check_tokens(const JobRequest& request, const Tokenizer& tokenizer) {
    for (const int32_t token : request.prompt) {
        if (tokenizer.valid(token)) continue;
        fail("token {} is not in the vocabulary; this model has {} tokens, so 0 <= token < {}",
             token, tokenizer.n_vocab(), tokenizer.n_vocab());
    }
}

}  // namespace

Engine::Engine(std::shared_ptr<Model> model, const Tokenizer& tokenizer,
               std::vector<VariantSettings> variants, const EngineSettings& settings,
               const LoadProgress& progress)
    : tokenizer_(tokenizer),
      variants_(std::move(variants)),
      pooling_(settings.pooling ? *settings.pooling : file_pooling(model->file())) {
    if (variants_.empty()) fail("an engine needs at least one variant");
    auto counters = std::make_unique<EngineCounters>();
    const SlotPolicy policy{.deterministic = settings.deterministic,
                            .n_snapshots = settings.n_snapshots,
                            .similarity = settings.slot_similarity,
                            .pooling = pooling_};
    std::vector<SlotPool> pools;
    for (const VariantSettings& variant : variants_) {
        pools.emplace_back(
            std::make_unique<Context>(model, variant.plan, completed(settings.context), progress),
            policy, *counters);
    }
    loop_ = std::make_unique<EngineLoop>(std::move(pools), std::move(counters), settings.queue);
}

Engine::~Engine() = default;

ReadyJob Engine::prepared(std::shared_ptr<Job> job) const {
    const JobRequest& request = job->request();
    if (request.variant >= variants_.size()) {
        fail("variant {} does not exist; there are {}", request.variant, variants_.size());
    }
    const uint32_t n_slots = context(request.variant).settings().cache.n_seq;
    if (request.slot < -1 || request.slot >= static_cast<int32_t>(n_slots)) {
        fail("slot {} does not exist; there are {}, so 0 <= slot < {}, or -1 for any", request.slot,
             n_slots, n_slots);
    }
    check_prompt_size(request.prompt.size(), n_ctx());
    check_tokens(request, tokenizer_);
    ReadyJob ready{.job = std::move(job), .generation = nullptr};
    if (request.kind == JobRequest::Kind::embedding) return ready;
    const int64_t n_room = int64_t{n_ctx()} - static_cast<int64_t>(request.prompt.size());
    if (n_room == 0 && request.generation.n_predict != 0) {
        fail("the prompt has {} tokens, the context {}: there is no room for an answer",
             request.prompt.size(), n_ctx());
    }
    ready.generation =
        std::make_unique<Generation>(request.generation, tokenizer_, request.prompt, n_room);
    return ready;
}

bool Engine::submit(std::span<const std::shared_ptr<Job>> jobs) {
    if (const size_t most = loop_->queue().capacity(); jobs.size() > most) {
        fail("{} answers or prompts in one request, but the queue holds {} at most (--queue)",
             jobs.size(), most);
    }
    std::vector<ReadyJob> ready;
    ready.reserve(jobs.size());
    for (const std::shared_ptr<Job>& job : jobs) ready.push_back(prepared(job));
    return loop_->queue().push(std::move(ready));
}

bool Engine::drain(std::chrono::milliseconds patience) {
    loop_->queue().close();
    return loop_->queue().wait_until_idle(patience);
}

void Engine::stop() { loop_->queue().stop(); }

bool Engine::stopping() const { return loop_->queue().stopped(); }

const Context& Engine::context(size_t variant) const { return loop_->context(variant); }

uint32_t Engine::n_ctx() const { return context(0).settings().cache.n_cells(); }

std::vector<SlotState> Engine::slots() const { return loop_->slots(); }

EngineCounters Engine::counters() const { return loop_->counters(); }

}  // namespace pleat
