#include <algorithm>
#include <map>
#include <numeric>

#include "base/checked.h"
#include "base/error.h"
#include "base/units.h"
#include "engine/path_runner.h"
#include "lab/answering.h"
#include "lab/prefill.h"
#include "lab/scorer.h"

namespace pleat {
namespace {

/// Questions whose prompt and answer round up to the same multiple of this run in caches of one
/// size.
constexpr size_t length_step = 256;

/// Plans that answer together, and how many questions at once.
struct Group {
    std::vector<size_t> plans;
    uint32_t n_seq = 1;
};

/// What a graph of so many rows, all but a few of them without logits, computes in: the widest
/// intermediate results that live at a time.
uint64_t compute_bytes(const Hparams& h, uint64_t n_rows, uint64_t n_outputs) {
    uint64_t widest = 0;
    for (const LayerHparams& layer : h.layers) {
        const uint64_t ffn =
            std::max(uint64_t{3} * layer.n_ff, uint64_t{3} * h.n_ff_exp * h.n_expert_used);
        const uint64_t heads = uint64_t{layer.n_head} * (layer.head_dim_k + layer.head_dim_v);
        widest = std::max({widest, ffn, 4 * heads});
    }
    const uint64_t per_row = 4 * uint64_t{h.n_embd} + widest;
    // The logits are copied out of the graph.
    return sizeof(float) * (n_rows * per_row + 2 * n_outputs * h.n_vocab);
}

class Groups {
  public:
    Groups(const Answering& work, size_t n_questions, size_t longest_prompt, uint32_t n_ctx)
        : work_(work), n_questions_(n_questions), longest_prompt_(longest_prompt), n_ctx_(n_ctx) {}

    /// All plans if one question to each fits into the budget; else halves.
    std::vector<Group> of(const std::vector<size_t>& plans) const {
        std::vector<LayerPlan> some;
        uint64_t sequence_bytes = 0;
        const Hparams& h = work_.model->hparams();
        for (const size_t p : plans) {
            some.push_back(work_.plans[p]);
            sequence_bytes += PathRunner::sequence_bytes(work_.plans[p], work_.model->shape(),
                                                         n_ctx_, work_.settings.context);
        }
        const uint64_t each = sequence_bytes + compute_bytes(h, plans.size(), plans.size());
        const Prefill prefill(work_.model, some, work_.settings.context, n_ctx_);
        const uint64_t shared =
            prefill.bytes(longest_prompt_) +
            compute_bytes(h, prefill.n_rows(longest_prompt_), prefill.n_together(longest_prompt_));
        const uint64_t budget = work_.settings.memory_budget;
        const uint64_t n = budget < shared ? 0 : (budget - shared) / each;
        const uint64_t most = std::min<uint64_t>(n, work_.settings.n_parallel / plans.size());
        if (most > 0) {
            return {{plans, static_cast<uint32_t>(std::min<uint64_t>(most, n_questions_))}};
        }
        if (plans.size() == 1) {
            fail(
                "one question of {} tokens under one plan takes {}, more than the {} that were "
                "allowed",
                n_ctx_, format_bytes(shared + each), format_bytes(budget));
        }
        const auto middle = plans.begin() + static_cast<std::ptrdiff_t>(plans.size() / 2);
        std::vector<Group> groups = of({plans.begin(), middle});
        for (Group& group : of({middle, plans.end()})) groups.push_back(std::move(group));
        return groups;
    }

  private:
    const Answering& work_;
    size_t n_questions_;
    size_t longest_prompt_;
    uint32_t n_ctx_;
};

/// One group of plans, and the questions of one length.
class GroupAnswers {
  public:
    GroupAnswers(Answering& work, const Group& group, uint32_t n_ctx)
        : work_(work),
          group_(group),
          prefill_(work.model, plans_of(work, group), work.settings.context, n_ctx),
          runner_(work.model, plans_of(work, group), group.n_seq, n_ctx, work.settings.context) {}

    bool run(std::span<const size_t> questions) {
        auto next = questions.begin();
        while (next != questions.end() || !runner_.sequences().empty()) {
            while (next != questions.end() && has_room()) {
                if (!work_.goes_on()) return false;
                ask(*next++);
            }
            if (!runner_.sequences().empty()) step();
            if (!work_.goes_on()) return false;
        }
        return true;
    }

  private:
    static std::vector<LayerPlan> plans_of(const Answering& work, const Group& group) {
        std::vector<LayerPlan> plans;
        for (const size_t p : group.plans) plans.push_back(work.plans[p]);
        return plans;
    }

    /// A question goes to all plans at once, since they share the work of its prompt.
    bool has_room() const {
        for (uint32_t p = 0; p < group_.plans.size(); ++p) {
            if (runner_.n_sequences(p) == runner_.n_seq()) return false;
        }
        return true;
    }

    void ask(size_t question) {
        const std::vector<int32_t>& prompt = work_.questions[question].prompt;
        const size_t first = runner_.sequences().size();
        for (uint32_t p = 0; p < group_.plans.size(); ++p) {
            runner_.begin(question, p, static_cast<uint32_t>(prompt.size()));
        }
        std::vector<int32_t> tokens(group_.plans.size());
        prefill_.run(
            prompt,
            {.on_pass = [&](size_t plan, size_t index, const PassRunner& from,
                            size_t sequence) { runner_.take(first + plan, index, from, sequence); },
             .on_logits =
                 [&](size_t plan, std::span<const float> logits) {
                     tokens[plan] = likeliest(logits);
                 }});
        work_.peak_bytes =
            std::max(work_.peak_bytes, prefill_.peak_bytes() + runner_.buffer_bytes());
        for (size_t p = tokens.size(); p-- > 0;) take(first + p, tokens[p]);
    }

    void step() {
        std::vector<int32_t> tokens;
        for (const PathRunner::Sequence& s : runner_.sequences()) {
            tokens.push_back(work_.answers[group_.plans[s.plan]][s.id].tokens.back());
        }
        runner_.step(tokens);
        // From the last one, which is what an end moves into the gap.
        for (size_t row = tokens.size(); row-- > 0;) take(row, likeliest(runner_.logits(row)));
    }

    void take(size_t row, int32_t token) {
        const PathRunner::Sequence& s = runner_.sequences()[row];
        if (!work_.take(group_.plans[s.plan], s.id, token)) runner_.end(row);
    }

    Answering& work_;
    const Group& group_;
    Prefill prefill_;
    PathRunner runner_;
};

}  // namespace

bool answer_together(Answering& work) {
    std::vector<size_t> all(work.plans.size());
    std::iota(all.begin(), all.end(), size_t{0});
    std::map<size_t, std::vector<size_t>> by_length;
    for (size_t q = 0; q < work.questions.size(); ++q) {
        by_length[round_up(work.questions[q].n_ctx(), length_step)].push_back(q);
    }
    for (const auto& [length, questions] : by_length) {
        size_t longest_prompt = 0;
        size_t n_ctx = 0;
        for (const size_t q : questions) {
            longest_prompt = std::max(longest_prompt, work.questions[q].prompt.size());
            n_ctx = std::max(n_ctx, work.questions[q].n_ctx());
        }
        const auto cells = static_cast<uint32_t>(n_ctx);
        for (const Group& group : Groups(work, questions.size(), longest_prompt, cells).of(all)) {
            if (!GroupAnswers(work, group, cells).run(questions)) return false;
        }
    }
    return true;
}

}  // namespace pleat
