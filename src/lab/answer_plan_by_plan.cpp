#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "engine/context.h"
#include "lab/answering.h"
#include "lab/scorer.h"

namespace pleat {
namespace {

/// One plan, and some questions at once: a sequence each.
class PlanAnswers {
  public:
    PlanAnswers(Answering& work, size_t plan, Context& context)
        : work_(work), plan_(plan), context_(context) {}

    bool run(std::span<const size_t> group) {
        context_.clear();
        Batch batch;
        std::vector<size_t> asked;
        for (size_t s = 0; s < group.size(); ++s) {
            add(batch, s, work_.questions[group[s]].prompt);
            asked.push_back(s);
        }
        while (!batch.empty()) {
            if (context_.decode(batch) != DecodeStatus::ok) fail("the questions do not fit");
            batch.clear();
            std::vector<size_t> next;
            for (size_t i = 0; i < asked.size(); ++i) {
                const size_t question = group[asked[i]];
                if (!work_.take(plan_, question, likeliest(context_.logits(i)))) continue;
                const WrittenAnswer& answer = work_.answers[plan_][question];
                add(batch, asked[i], std::span(answer.tokens).last(1));
                next.push_back(asked[i]);
            }
            if (!work_.goes_on()) return false;
            asked = std::move(next);
        }
        return true;
    }

  private:
    void add(Batch& batch, size_t sequence, std::span<const int32_t> tokens) const {
        const auto s = static_cast<int32_t>(sequence);
        int32_t position = context_.next_position(s);
        for (size_t i = 0; i < tokens.size(); ++i) {
            batch.push_back({.token = tokens[i],
                             .position = position++,
                             .sequence = s,
                             .output = i + 1 == tokens.size()});
        }
    }

    Answering& work_;
    size_t plan_;
    Context& context_;
};

}  // namespace

bool answer_plan_by_plan(Answering& work) {
    if (work.questions.empty()) return true;
    std::vector<size_t> order(work.questions.size());
    std::iota(order.begin(), order.end(), size_t{0});
    ContextSettings settings = work.settings.context;
    CacheSettings& cache = settings.cache;
    cache.kv_unified = false;
    cache.n_ctx = 0;
    for (const Question& q : work.questions) {
        cache.n_ctx = std::max(cache.n_ctx, static_cast<uint32_t>(q.n_ctx()));
    }
    for (size_t p = 0; p < work.plans.size(); ++p) {
        cache.n_seq = 1;
        const uint64_t each = plan_cost(work.plans[p], work.model->shape(), cache).cache_bytes();
        const auto most =
            std::min<uint64_t>({work.settings.n_parallel, max_sequences, work.questions.size(),
                                work.settings.memory_budget / std::max<uint64_t>(1, each)});
        cache.n_seq = static_cast<uint32_t>(std::max<uint64_t>(1, most));
        Context context(work.model, work.plans[p], settings);
        work.peak_bytes =
            std::max(work.peak_bytes, context.cache_bytes() + context.compute_bytes());
        PlanAnswers answers(work, p, context);
        for (size_t at = 0; at < order.size(); at += cache.n_seq) {
            const size_t n = std::min<size_t>(cache.n_seq, order.size() - at);
            if (!answers.run(std::span(order).subspan(at, n))) return false;
        }
    }
    return true;
}

}  // namespace pleat
