#include "serve/server_slot.h"

#include <algorithm>
#include <cmath>
#include <exception>

#include "serve/token_probs.h"

namespace pleat {
namespace {

double ms_between(ServerSlot::Clock::time_point begin, ServerSlot::Clock::time_point end) {
    return std::chrono::duration<double, std::milli>(end - begin).count();
}

bool sound(std::span<const float> logits) {
    return std::ranges::none_of(logits, [](float x) { return std::isnan(x) || x > 1e20F; });
}

}  // namespace

SlotState ServerSlot::state(size_t variant) const {
    SlotState state{.variant = variant, .id = id(), .n_cached = cache_.size()};
    if (idle()) return state;
    state.busy = true;
    state.job = work_.job;
    state.prompt = in_prompt();
    state.n_prompt = prompt().size();
    state.n_prompt_done = n_done_;
    state.n_decoded = work_.generation ? work_.generation->tokens().size() : 0;
    return state;
}

void ServerSlot::begin(ReadyJob work) {
    work_ = std::move(work);
    begun_ = Clock::now();
    has_newline_ = false;
    hidden_.clear();
    // An embedding is made of all tokens' hidden states, which nobody keeps.
    n_reused_ = reuses() ? cache_.reusable(prompt()) : 0;
    n_done_ = n_reused_;
    cache_.rewind(n_reused_);
    counters_.cached_tokens += n_reused_;
    work_.job->mark_started();
}

void ServerSlot::adopt(const ServerSlot& other, size_t n) {
    cache_.adopt(other.cache_, n);
    counters_.cached_tokens += n - n_done_;
    n_reused_ += n - n_done_;
    n_done_ = n;
}

std::span<const int32_t> ServerSlot::next_chunk() const {
    const auto rest = prompt().subspan(n_done_);
    return rest.first(std::min(rest.size(), cache_.chunk()));
}

void ServerSlot::took_chunk(const Context& context, Pooling pooling) {
    const auto chunk = next_chunk();
    cache_.append(chunk);
    n_done_ += chunk.size();
    counters_.prompt_tokens += chunk.size();
    for (size_t i = 0; wants_embedding() && i < chunk.size(); ++i) {
        const auto row = context.hidden(i);
        hidden_.emplace_back(row.begin(), row.end());
    }
    if (in_prompt()) return;
    prompt_done_ = Clock::now();
    if (wants_embedding()) {
        JobResult result;
        result.embeddings = pooled(std::exchange(hidden_, {}), pooling);
        ++counters_.jobs_done;
        end(std::move(result), {});
    } else if (work_.generation->finished()) {  // no token was asked for
        finish(work_.generation->reason());
    } else {
        draw(context.logits(0));
    }
}

void ServerSlot::took_token(std::span<const float> logits) {
    const int32_t token = next_token();
    cache_.append({&token, 1});
    draw(logits);
}

void ServerSlot::draw(std::span<const float> logits) {
    const JobRequest& request = work_.job->request();
    Generation& generation = *work_.generation;
    JobEvent event;
    try {
        event.text = generation.step(logits);
        const int32_t token = generation.tokens().back();
        event.tokens.push_back(
            request.n_probs < 0
                ? TokenOutput{.drawn = {.token = token}}
                : token_output(token, logits, static_cast<size_t>(request.n_probs)));
    } catch (const std::exception& error) {
        // A model that computes nonsense is not the request's fault, samplers that end up with no
        // token are.
        break_off(error.what(), sound(logits));
        return;
    }
    ++counters_.predicted_tokens;
    has_newline_ = has_newline_ || event.text.find('\n') != std::string::npos;
    if (!generation.finished() && out_of_time())
        event.text += generation.finish(FinishReason::length);
    if (!generation.finished()) {
        event.timings = timings(Clock::now());
        work_.job->push(std::move(event));
        return;
    }
    ++counters_.jobs_done;
    end({.reason = generation.reason()}, std::move(event));
}

/// As stock's server has it: the limit counts from the first token on, and only once there was a
/// line break, so that a line is not cut in two.
bool ServerSlot::out_of_time() const {
    const auto limit = work_.job->request().time_limit;
    return limit.count() > 0 && has_newline_ && Clock::now() - prompt_done_ > limit;
}

void ServerSlot::finish(FinishReason reason) {
    JobEvent last;
    if (work_.generation) last.text = work_.generation->finish(reason);
    if (in_prompt()) prompt_done_ = Clock::now();
    ++(reason == FinishReason::cancelled ? counters_.jobs_cancelled : counters_.jobs_done);
    end({.reason = work_.generation ? work_.generation->reason() : reason}, std::move(last));
}

void ServerSlot::break_off(const std::string& error, bool client_error) {
    JobEvent last;
    if (in_prompt()) prompt_done_ = Clock::now();
    if (work_.generation) last.text = work_.generation->finish(FinishReason::cancelled);
    cache_.rewind(0);
    ++counters_.jobs_failed;
    end({.reason = FinishReason::cancelled, .error = error, .client_error = client_error},
        std::move(last));
}

JobTimings ServerSlot::timings(Clock::time_point now) const {
    return {.n_prompt = prompt().size(),
            .n_cached = n_reused_,
            .n_predicted = work_.generation ? work_.generation->tokens().size() : 0,
            .prompt_ms = ms_between(begun_, prompt_done_),
            .predicted_ms = ms_between(prompt_done_, now)};
}

void ServerSlot::end(JobResult result, JobEvent last) {
    last_used_ = Clock::now();
    result.slot = id();
    result.timings = timings(last_used_);
    if (work_.generation) {
        result.seed = work_.generation->seed();
        result.stop = work_.generation->stop();
    }
    const ReadyJob ended = std::move(work_);
    work_ = {};
    n_done_ = 0;
    ended.job->finish(std::move(result), std::move(last));
}

}  // namespace pleat
