#include "serve/slot_pool.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

namespace pleat {
namespace {

/// Adds the time until it ends to a counter.
class Timed {
  public:
    explicit Timed(double& seconds) : seconds_(seconds) {}
    ~Timed() {
        const auto now = std::chrono::steady_clock::now();
        seconds_ += std::chrono::duration<double>(now - begin_).count();
    }
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;

  private:
    double& seconds_;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// How many tokens two prompts have in common at their beginnings.
size_t n_shared(std::span<const int32_t> a, std::span<const int32_t> b) {
    const auto differ = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    return static_cast<size_t>(differ.first - a.begin());
}

}  // namespace

SlotPool::SlotPool(std::unique_ptr<Context> context, const SlotPolicy& policy,
                   EngineCounters& counters)
    : context_(std::move(context)), policy_(policy), counters_(counters) {
    const CacheSettings& cache = context_->settings().cache;
    for (uint32_t i = 0; i < cache.n_seq; ++i) {
        slots_.emplace_back(
            PromptCache(*context_, static_cast<int32_t>(i), cache.n_ubatch, policy.n_snapshots),
            counters);
    }
}

bool SlotPool::busy() const {
    return !std::ranges::all_of(slots_, [](const ServerSlot& slot) { return slot.idle(); });
}

std::vector<SlotState> SlotPool::states(size_t variant) const {
    std::vector<SlotState> states;
    for (const ServerSlot& slot : slots_) states.push_back(slot.state(variant));
    return states;
}

bool SlotPool::take(ReadyJob& job) {
    ServerSlot* const slot = slot_for(job.job->request());
    if (slot == nullptr) return false;
    slot->begin(std::move(job));
    return true;
}

/// The one asked for; else the one that holds most of the prompt, if that is worth it and little
/// else is lost there; else the one that has been idle for longest, which then takes over what
/// another one has.
ServerSlot* SlotPool::slot_for(const JobRequest& request) {
    if (request.slot >= 0) {
        ServerSlot& slot = slots_.at(static_cast<size_t>(request.slot));
        return slot.idle() ? &slot : nullptr;
    }
    ServerSlot* oldest = nullptr;
    ServerSlot* fullest = nullptr;
    size_t most = 0;
    for (ServerSlot& slot : slots_) {
        if (!slot.idle()) continue;
        if (oldest == nullptr || slot.last_used() < oldest->last_used()) oldest = &slot;
        const size_t n = request.cache_prompt ? slot.cache().reusable(request.prompt) : 0;
        const bool loses_little = n + slot.cache().chunk() >= slot.cache().n_exact();
        if (n <= most || !loses_little) continue;
        most = n;
        fullest = &slot;
    }
    const auto enough = policy_.similarity * static_cast<float>(request.prompt.size());
    return fullest != nullptr && static_cast<float>(most) >= enough ? fullest : oldest;
}

void SlotPool::drop_cancelled() {
    for (ServerSlot& slot : slots_) {
        if (slot.cancelled()) slot.finish(FinishReason::cancelled);
    }
}

void SlotPool::cancel_all() {
    for (ServerSlot& slot : slots_) {
        if (!slot.idle()) slot.finish(FinishReason::cancelled);
    }
}

void SlotPool::step() {
    decode_tokens();
    decode_chunk();
}

void SlotPool::decode_tokens() {
    std::vector<ServerSlot*> generating;
    for (ServerSlot& slot : slots_) {
        if (slot.generating()) generating.push_back(&slot);
    }
    if (generating.empty()) return;
    ++counters_.decode_steps;
    counters_.busy_slots_sum += generating.size();
    const Timed timed(counters_.predicted_seconds);
    if (!policy_.deterministic) return decode_tokens_of(generating);
    for (ServerSlot* const& slot : generating) decode_tokens_of({&slot, 1});
}

void SlotPool::decode_tokens_of(Slots slots) {
    Batch batch;
    for (const ServerSlot* const slot : slots) {
        batch.push_back({.token = slot->next_token(),
                         .position = static_cast<int32_t>(slot->cache().size()),
                         .sequence = slot->id(),
                         .output = true});
    }
    if (!decode(slots, batch, Outputs::logits)) return;
    for (size_t i = 0; i < slots.size(); ++i) slots[i]->took_token(context_->logits(i));
}

void SlotPool::decode_chunk() {
    for (size_t i = 0; i < slots_.size(); ++i) {
        const size_t index = (next_prompt_ + i) % slots_.size();
        if (!slots_[index].in_prompt() || waits_for_another(slots_[index])) continue;
        adopt_prefix(slots_[index]);
        next_prompt_ = index + 1;
        decode_chunk_of(slots_[index]);
        return;
    }
}

/// Is another slot about to compute what this one's prompt begins with? Of slots with the same
/// beginning one is always ahead of all, so that not all of them wait.
bool SlotPool::waits_for_another(const ServerSlot& slot) const {
    if (!slot.reuses()) return false;
    return std::ranges::any_of(slots_, [&](const ServerSlot& other) {
        if (!other.in_prompt() || &other == &slot) return false;
        const bool ahead =
            std::pair(other.n_done(), slot.id()) > std::pair(slot.n_done(), other.id());
        const size_t n_same =
            n_shared(slot.prompt().first(slot.prompt().size() - 1), other.prompt());
        const size_t n_chunks = n_same / slot.cache().chunk();
        return ahead && other.n_done() < n_chunks * slot.cache().chunk();
    });
}

void SlotPool::adopt_prefix(ServerSlot& slot) {
    if (!slot.reuses()) return;
    const ServerSlot* best = nullptr;
    size_t most = slot.n_done();
    for (const ServerSlot& other : slots_) {
        const size_t n = &other == &slot ? 0 : other.cache().reusable(slot.prompt());
        if (n <= most) continue;
        most = n;
        best = &other;
    }
    if (best != nullptr) slot.adopt(*best, most);
}

void SlotPool::decode_chunk_of(ServerSlot& slot) {
    const Timed timed(counters_.prompt_seconds);
    const auto chunk = slot.next_chunk();
    Batch batch;
    for (const int32_t token : chunk) {
        batch.push_back({.token = token,
                         .position = static_cast<int32_t>(slot.cache().size() + batch.size()),
                         .sequence = slot.id(),
                         .output = slot.wants_embedding()});
    }
    batch.back().output = batch.back().output || slot.at_last_chunk();
    ServerSlot* const one = &slot;
    const Outputs outputs = slot.wants_embedding() ? Outputs::hidden : Outputs::logits;
    if (!decode({&one, 1}, batch, outputs)) return;
    slot.took_chunk(*context_, policy_.pooling);
}

bool SlotPool::decode(Slots slots, std::span<const BatchToken> batch, Outputs outputs) {
    std::string error = "the cache of this slot is full";
    try {
        if (context_->decode(batch, outputs) == DecodeStatus::ok) return true;
    } catch (const std::exception& thrown) {
        error = thrown.what();
    }
    for (ServerSlot* const slot : slots) slot->break_off(error, false);
    return false;
}

}  // namespace pleat
