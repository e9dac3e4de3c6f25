#include "lab/scorer.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <thread>
#include <utility>

#include "base/error.h"
#include "lab/answers.h"
#include "lab/json.h"
#include "lab/perplexity.h"
#include "lab/statistics.h"

namespace pleat {
namespace {

/// Probes of about one length run together, filled up to a multiple of this at their end, where
/// nothing looks back at what was filled in.
constexpr size_t length_step = 32;

/// One sequence under one plan: per measure of its source, items.
using SequenceScores = std::vector<ItemScores>;

/// Adds to the last item of a text, or begins the next one.
void add_token(ItemScores& items, size_t n_before, double value) {
    if (n_before % Workload::text_item_tokens == 0) {
        items.sum.push_back(0.0);
        items.weight.push_back(0.0);
    }
    items.sum.back() += value;
    items.weight.back() += 1.0;
}

class Rows {
  public:
    Rows(std::span<const float> logits, size_t n_rows)
        : logits_(logits), n_vocab_(logits.size() / n_rows) {}
    std::span<const float> operator[](size_t row) const {
        return logits_.subspan(row * n_vocab_, n_vocab_);
    }

  private:
    std::span<const float> logits_;
    size_t n_vocab_;
};

/// Calls work(i) for every i below n, on so many threads. `work` must not throw.
void in_parallel(size_t n, int n_threads, const std::function<void(size_t)>& work) {
    const size_t n_teams =
        std::clamp<size_t>(static_cast<size_t>(n_threads), 1, std::max(n, size_t{1}));
    std::vector<std::thread> others;
    const auto share = [&](size_t team) {
        for (size_t i = team; i < n; i += n_teams) work(i);
    };
    for (size_t team = 1; team < n_teams; ++team) others.emplace_back(share, team);
    share(0);
    for (std::thread& other : others) other.join();
}

/// The reference's logits of an item, and what every comparison with them asks for.
struct Reference {
    std::vector<float> logits;
    std::vector<double> log_sums = {};    ///< by row; of scored rows
    std::vector<int32_t> likeliest = {};  ///< likewise
};

/// Scored rows of a text: over a large vocabulary the exponentials take as long as some layers do.
class TextRows {
  public:
    TextRows(const ScoredSequence& sequence, std::span<const float> logits, int n_threads)
        : sequence_(sequence), rows_(logits, sequence.item.rows.size()), n_threads_(n_threads) {
        for (size_t row = 0; row < sequence.targets.size(); ++row) {
            if (sequence.targets[row] >= 0) scored_.push_back(row);
        }
    }

    Reference as_reference(std::span<const float> logits) const {
        Reference reference{.logits = {logits.begin(), logits.end()}};
        reference.log_sums.resize(sequence_.targets.size());
        reference.likeliest.resize(sequence_.targets.size());
        in_parallel(scored_.size(), n_threads_, [&](size_t i) {
            reference.log_sums[scored_[i]] = log_sum_exp(rows_[scored_[i]]);
            reference.likeliest[scored_[i]] = likeliest(rows_[scored_[i]]);
        });
        return reference;
    }

    /// Without `reference`: of the reference itself.
    SequenceScores score(const Reference* reference) const {
        struct Token {
            double nll = 0.0;
            double kl = 0.0;
            double top1 = 1.0;
        };
        std::vector<Token> tokens(scored_.size());
        in_parallel(scored_.size(), n_threads_, [&](size_t i) {
            const size_t row = scored_[i];
            tokens[i].nll = negative_log_likelihood(rows_[row], sequence_.targets[row]);
            if (reference == nullptr) return;
            const Rows base(reference->logits, sequence_.item.rows.size());
            tokens[i].kl = kl_divergence(base[row], reference->log_sums[row], rows_[row]);
            tokens[i].top1 = likeliest(rows_[row]) == reference->likeliest[row] ? 1.0 : 0.0;
        });
        SequenceScores scores(3);
        for (size_t i = 0; i < tokens.size(); ++i) {
            add_token(scores[0], i, tokens[i].nll);
            add_token(scores[1], i, tokens[i].kl);
            add_token(scores[2], i, tokens[i].top1);
        }
        return scores;
    }

  private:
    const ScoredSequence& sequence_;
    Rows rows_;
    int n_threads_;
    std::vector<size_t> scored_;
};

SequenceScores score_probe(const ScoredSequence& sequence, const Rows& plan) {
    bool exact = true;
    double nll = 0.0;
    size_t n = 0;
    for (size_t row = 0; row < sequence.targets.size(); ++row) {
        if (sequence.targets[row] < 0) continue;
        ++n;
        exact = exact && likeliest(plan[row]) == sequence.targets[row];
        nll += negative_log_likelihood(plan[row], sequence.targets[row]);
    }
    SequenceScores scores(2);
    scores[0] = {.sum = {exact ? 1.0 : 0.0}, .weight = {1.0}};
    scores[1] = {.sum = {nll}, .weight = {static_cast<double>(n)}};
    return scores;
}

void append(ItemScores& to, const ItemScores& from) {
    to.sum.insert(to.sum.end(), from.sum.begin(), from.sum.end());
    to.weight.insert(to.weight.end(), from.weight.begin(), from.weight.end());
}

}  // namespace

int32_t likeliest(std::span<const float> logits) {
    return static_cast<int32_t>(std::ranges::max_element(logits) - logits.begin());
}

double log_sum_exp(std::span<const float> logits) {
    const double greatest = *std::ranges::max_element(logits);
    double sum = 0.0;
    for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - greatest);
    return greatest + std::log(sum);
}

double kl_divergence(std::span<const float> reference, std::span<const float> plan) {
    return kl_divergence(reference, log_sum_exp(reference), plan);
}

double kl_divergence(std::span<const float> reference, double lse_reference,
                     std::span<const float> plan) {
    const double lse_plan = log_sum_exp(plan);
    double sum = 0.0;
    for (size_t i = 0; i < reference.size(); ++i) {
        const double log_p = static_cast<double>(reference[i]) - lse_reference;
        const double log_q = static_cast<double>(plan[i]) - lse_plan;
        sum += std::exp(log_p) * (log_p - log_q);
    }
    // Rounding may leave a tiny negative number where the two are equal.
    return std::max(sum, 0.0);
}

Scorer::Scorer(std::shared_ptr<Model> model, SweepSettings settings)
    : model_(std::move(model)), settings_(settings) {}

/// One call of score().
struct Scorer::Found {
    const std::vector<LayerPlan>& plans;
    const Workload& workload;
    const std::vector<size_t>& wanted;  ///< sequences of the workload
    std::vector<size_t> read = {};      ///< positions in `wanted`
    std::vector<size_t> answered = {};
    std::vector<std::vector<SequenceScores>> scores = {};  ///< by plan, then position
    std::vector<std::vector<ScoredAnswer>> answers = {};
    uint64_t peak_bytes = 0;
};

PlanScores Scorer::score(const std::vector<LayerPlan>& plans, const Workload& workload,
                         std::span<const size_t> sequences, const Progress& progress) const {
    std::vector<size_t> wanted(sequences.begin(), sequences.end());
    if (wanted.empty()) {
        for (size_t i = 0; i < workload.sequences().size(); ++i) wanted.push_back(i);
    }
    Found found{.plans = plans, .workload = workload, .wanted = wanted};
    found.scores.assign(plans.size(), std::vector<SequenceScores>(wanted.size()));
    for (size_t i = 0; i < wanted.size(); ++i) {
        const bool answered = workload.sequences().at(wanted[i]).question.has_value();
        (answered ? found.answered : found.read).push_back(i);
    }
    const auto share = [&](const std::vector<size_t>& part) {
        return static_cast<double>(part.size()) / static_cast<double>(wanted.size());
    };
    const auto read_progress = [&](double fraction) {
        return !progress || progress(fraction * share(found.read));
    };
    const auto answer_progress = [&](double fraction) {
        return !progress || progress(share(found.read) + fraction * share(found.answered));
    };
    PlanScores result;
    result.complete = score_read(found, read_progress) && score_answered(found, answer_progress);
    if (!result.complete) return result;
    result.peak_bytes = found.peak_bytes;
    result.answers = std::move(found.answers);
    for (const auto& plan : found.scores) {
        auto& scores = result.by_plan.emplace_back(workload.measures().size());
        for (size_t i = 0; i < wanted.size(); ++i) {
            const size_t source = workload.sequences()[wanted[i]].source;
            const auto columns = workload.columns(source);
            for (size_t m = 0; m < plan[i].size(); ++m) {
                if (columns[m]) append(scores[*columns[m]], plan[i][m]);
            }
        }
    }
    return result;
}

bool Scorer::score_answered(Found& found, const Progress& progress) const {
    if (found.answered.empty()) return true;
    std::vector<Probe> probes;
    for (const size_t i : found.answered) {
        probes.push_back(*found.workload.sequences()[found.wanted[i]].question);
    }
    const ProbeAnswers answers = answer_probes(
        model_, found.plans, *found.workload.tokenizer(), probes,
        {.context = settings_.context, .memory_budget = settings_.memory_budget}, progress);
    if (!answers.complete) return false;
    found.peak_bytes = std::max(found.peak_bytes, answers.peak_bytes);
    const auto one = [](double value) { return ItemScores{.sum = {value}, .weight = {1.0}}; };
    const auto truth = [&](bool value) { return one(value ? 1.0 : 0.0); };
    found.answers.resize(found.plans.size());
    for (size_t p = 0; p < found.plans.size(); ++p) {
        for (size_t i = 0; i < probes.size(); ++i) {
            const ProbeResult& r = answers.by_plan[p][i];
            found.answers[p].push_back({.sequence = found.wanted[found.answered[i]],
                                        .text = answers.texts[p][i],
                                        .result = r});
            SequenceScores& scores = found.scores[p][found.answered[i]];
            if (probes[i].eq) {
                scores = {one(r.score), one(r.eq), one(r.confidence), truth(r.parsed),
                          truth(r.cut)};
            } else {
                scores = {one(r.score), truth(r.exact), truth(r.parsed), truth(r.length_ok),
                          truth(r.cut)};
            }
        }
    }
    return true;
}

bool Scorer::score_read(Found& found, const Progress& progress) const {
    if (found.read.empty()) return true;
    const Workload& workload = found.workload;
    const std::vector<size_t>& wanted = found.wanted;
    const std::vector<LayerPlan>& plans = found.plans;
    std::map<size_t, std::vector<size_t>> by_length;  // positions in `wanted`
    uint64_t total = 0;
    for (const size_t i : found.read) {
        const ScoredSequence& sequence = workload.sequences()[wanted[i]];
        const size_t n = sequence.item.tokens.size();
        const size_t length = workload.is_text(sequence.source)
                                  ? n
                                  : (n + length_step - 1) / length_step * length_step;
        by_length[length].push_back(i);
        total += length;
    }

    std::map<size_t, bool> compared;  // by source: are plans compared with the first one?
    for (const size_t i : found.read) {
        const size_t source = workload.sequences()[wanted[i]].source;
        const auto columns = workload.columns(source);
        compared[source] = workload.is_text(source) && (columns[1] || columns[2]);
    }
    Sweep sweep(model_, plans, settings_);
    uint64_t done = 0;
    for (const auto& [length, members] : by_length) {
        std::vector<SweepItem> items;
        for (const size_t i : members) {
            SweepItem item = workload.sequences()[wanted[i]].item;
            item.tokens.resize(length, item.tokens.back());
            items.push_back(std::move(item));
        }
        std::map<size_t, Reference> references;  // of the items under way
        const auto on_logits = [&](size_t plan, size_t item, std::span<const float> logits) {
            const ScoredSequence& sequence = workload.sequences()[wanted[members[item]]];
            SequenceScores& target = found.scores[plan][members[item]];
            if (!workload.is_text(sequence.source)) {
                target = score_probe(sequence, Rows(logits, sequence.item.rows.size()));
                return;
            }
            const TextRows rows(sequence, logits, settings_.context.n_threads_batch);
            const bool compares = compared[sequence.source] && plans.size() > 1;
            if (plan == 0 && compares) references[item] = rows.as_reference(logits);
            target = rows.score(plan == 0 || !compares ? nullptr : &references.at(item));
        };
        const auto on_done = [&](size_t, size_t) { references.clear(); };
        const auto report = [&](uint64_t n, uint64_t of) {
            if (!progress) return true;
            const double part = static_cast<double>(length * members.size()) *
                                static_cast<double>(n) / static_cast<double>(of);
            return progress((static_cast<double>(done) + part) / static_cast<double>(total));
        };
        if (!sweep.run(items, on_logits, on_done, report)) return false;
        done += length * members.size();
    }
    found.peak_bytes = std::max(found.peak_bytes, sweep.peak_bytes());
    return true;
}

void require_readable_answers(const Scorer& scorer, const LayerPlan& identity, Workload workload,
                              double min_parse) {
    constexpr size_t n_tried = 8;  // of each kind
    if (workload.tokenizer() == nullptr) return;
    workload.want_measures({"parsed"});  // only the questions are left
    std::map<size_t, std::vector<size_t>> by_source;
    for (size_t i = 0; i < workload.sequences().size(); ++i) {
        const ScoredSequence& sequence = workload.sequences()[i];
        std::vector<size_t>& some = by_source[sequence.source];
        if (some.size() < n_tried) some.push_back(i);
    }
    for (const auto& [source, some] : by_source) {
        const PlanScores scores = scorer.score({identity}, workload, some);
        size_t parsed = 0;
        for (const auto column : workload.columns(source)) parsed = column.value_or(parsed);
        const double rate = mean_of(scores.by_plan[0][parsed]).value;
        if (rate >= min_parse) continue;
        const auto unread = std::ranges::find_if(
            scores.answers[0], [](const ScoredAnswer& it) { return !it.result.parsed; });
        fail(
            "of {} answers that the identity plan gives only {:.0f} % can be read ({}), {:.0f} % "
            "are wanted (--min-parse); one that cannot, to {}: {}",
            some.size(), 100.0 * rate, workload.measures()[parsed].name, 100.0 * min_parse,
            workload.sequences()[unread->sequence].id, dump_json(unread->text.substr(0, 80)));
    }
}

}  // namespace pleat
