#include "lab/trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "base/error.h"
#include "lab/balanced_order.h"
#include "lab/random.h"

namespace pleat {
namespace {

const char* name_of(TrialPart part) {
    return part == TrialPart::selection ? "selection" : "validation";
}

/// What a kill can lose of every plan. Less at a time would be slower.
constexpr size_t piece_tokens = 512;
/// A question's prompt and answer, which are not tokens yet.
constexpr size_t question_tokens = 64;

void append(ItemScores& to, const ItemScores& from) {
    to.sum.insert(to.sum.end(), from.sum.begin(), from.sum.end());
    to.weight.insert(to.weight.end(), from.weight.begin(), from.weight.end());
}

ItemScores slice(const ItemScores& items, size_t begin, size_t n) {
    const auto part = [&](const std::vector<double>& v) {
        const auto some = std::span(v).subspan(begin, n);
        return std::vector<double>(some.begin(), some.end());
    };
    return {.sum = part(items.sum), .weight = part(items.weight)};
}

ItemScores first_of(const ItemScores& items, size_t n) { return slice(items, 0, n); }

Difference difference_of(const PairedDifference& d) {
    return {.value = d.mean, .low = d.low, .high = d.high};
}

/// Moves one of a source's sequences where the hash gave it none.
void give_one(const Workload& workload, size_t source, std::vector<size_t>& from,
              std::vector<size_t>& to, std::string_view part) {
    const auto is_of = [&](size_t i) { return workload.sequences()[i].source == source; };
    if (std::ranges::any_of(to, is_of)) return;
    if (std::ranges::count_if(from, is_of) < 2) {
        fail(
            "{} has one item, and the {} part needs one, too; use a longer text, a smaller -c, "
            "more probes, or --validation 0",
            workload.source_name(source), part);
    }
    const auto one = std::ranges::find_if(from, is_of);
    to.insert(std::ranges::upper_bound(to, *one), *one);
    from.erase(one);
}

uint64_t hash_of(std::string_view id, uint64_t seed) {
    uint64_t hash = seed;
    for (const char c : id) hash = SplitMix64::mix(hash ^ static_cast<unsigned char>(c));
    return hash;
}

/// Where pieces end: at every step, and whenever there are tokens enough.
std::vector<size_t> piece_ends(std::span<const size_t> steps, const Workload& workload,
                               std::span<const size_t> sequences) {
    std::vector<size_t> ends;
    size_t n_tokens = 0;
    for (size_t i = 0; i < sequences.size(); ++i) {
        const ScoredSequence& sequence = workload.sequences()[sequences[i]];
        n_tokens += sequence.question ? question_tokens : sequence.item.tokens.size();
        const bool at_step = std::ranges::find(steps, i + 1) != steps.end();
        if (n_tokens < piece_tokens && !at_step && i + 1 < sequences.size()) continue;
        ends.push_back(i + 1);
        n_tokens = 0;
    }
    return ends;
}

}  // namespace

Split split_workload(const Workload& workload, double fraction, uint64_t seed) {
    Split split = split_items(workload.ids(), fraction, seed);
    std::set<size_t> sources;
    for (const ScoredSequence& sequence : workload.sequences()) sources.insert(sequence.source);
    for (const size_t source : sources) {
        if (fraction > 0) {
            give_one(workload, source, split.selection, split.validation, "validation");
        }
        if (fraction < 1) {
            give_one(workload, source, split.validation, split.selection, "selection");
        }
    }
    std::ranges::stable_sort(split.selection, {},
                             [&](size_t i) { return hash_of(workload.sequences()[i].id, seed); });
    return split;
}

IdentityFirst order_by_identity(const Scorer& scorer, const LayerPlan& identity,
                                const Workload& workload, Split& split, uint64_t seed,
                                const Scorer::Progress& progress) {
    const PlanScores scores = scorer.score({identity}, workload, split.selection, progress);
    if (!scores.complete) return {.by_sequence = {}, .complete = false};
    const PlanItems& all = scores.by_plan.front();
    std::vector<size_t> taken(all.size());  // by measure
    std::vector<PlanItems> by_sequence;
    std::vector<ItemLevel> levels;
    for (const size_t sequence : split.selection) {
        const size_t source = workload.sequences()[sequence].source;
        const size_t n = workload.n_items(sequence);
        PlanItems& own = by_sequence.emplace_back(all.size());
        std::optional<double> level;  // by the source's first measure
        for (const std::optional<size_t> column : workload.columns(source)) {
            if (!column) continue;
            own[*column] = slice(all[*column], taken[*column], n);
            taken[*column] += n;
            if (!level) level = mean_of(own[*column]).value;
        }
        levels.push_back({.source = source, .value = level.value_or(0.0)});
    }
    IdentityFirst result;
    std::vector<size_t> selection;
    for (const size_t i : balanced_order(levels, seed)) {
        selection.push_back(split.selection[i]);
        result.by_sequence.push_back(std::move(by_sequence[i]));
    }
    split.selection = std::move(selection);
    return result;
}

Trials::Trials(const Scorer& scorer, const Workload& workload, Split split, Journal* journal,
               std::span<const size_t> steps)
    : scorer_(scorer),
      workload_(workload),
      split_(std::move(split)),
      journal_(journal),
      measures_(workload.measures()) {
    if (split_.selection.empty()) fail("no items to choose plans by");
    piece_ends_[TrialPart::selection] = piece_ends(steps, workload, split_.selection);
    piece_ends_[TrialPart::validation] = piece_ends({}, workload, split_.validation);
}

const std::vector<size_t>& Trials::sequences(TrialPart part) const {
    return part == TrialPart::selection ? split_.selection : split_.validation;
}

const Trials::Known* Trials::find(const std::string& plan, TrialPart part) const {
    const auto it = known_.find({plan, part});
    return it == known_.end() ? nullptr : &it->second;
}

const PlanItems* Trials::find(const LayerPlan& plan, TrialPart part) const {
    const Known* const known = find(plan.canonical(), part);
    return known == nullptr ? nullptr : &known->items;
}

std::optional<double> Trials::expected(const LayerPlan& plan, size_t measure) const {
    const Known* const own = find(plan.canonical(), TrialPart::selection);
    const Known* const identity = find(identity_, TrialPart::selection);
    if (own == nullptr || own->items.at(measure).size() == 0) return std::nullopt;
    return expected_mean(own->items[measure], identity->items.at(measure));
}

std::optional<PairedDifference> Trials::difference(const LayerPlan& plan, TrialPart part,
                                                   size_t measure,
                                                   const BootstrapOptions& options) const {
    return difference(plan.canonical(), part, measure, options);
}

std::optional<PairedDifference> Trials::difference(const std::string& plan, TrialPart part,
                                                   size_t measure,
                                                   const BootstrapOptions& options) const {
    const Known* const own = find(plan, part);
    const Known* const identity = find(identity_, part);
    if (own == nullptr || identity == nullptr || own->items.at(measure).size() == 0) {
        return std::nullopt;
    }
    const ItemScores& items = own->items[measure];
    return paired_difference(items, first_of(identity->items[measure], items.size()), options);
}

/// Names the sequences, so that a journal serves runs with other steps as far as they agree.
std::string Trials::piece_name(TrialPart part, size_t piece) const {
    const std::vector<size_t>& ends = piece_ends_.at(part);
    return fmt::format("{} {}..{} of {}", name_of(part), piece == 0 ? 1 : ends[piece - 1] + 1,
                       ends[piece], sequences(part).size());
}

void Trials::give(const LayerPlan& plan, std::vector<PlanItems> by_sequence) {
    if (by_sequence.size() != split_.selection.size()) {
        fail("{} sequences are given of {}", by_sequence.size(), split_.selection.size());
    }
    given_[plan.canonical()] = std::move(by_sequence);
}

std::optional<PlanItems> Trials::given(const std::string& plan, TrialPart part,
                                       size_t piece) const {
    const auto it = given_.find(plan);
    if (part != TrialPart::selection || it == given_.end()) return std::nullopt;
    const std::vector<size_t>& ends = piece_ends_.at(part);
    PlanItems items(measures_.size());
    for (size_t i = piece == 0 ? 0 : ends[piece - 1]; i < ends[piece]; ++i) {
        for (size_t m = 0; m < items.size(); ++m) append(items[m], it->second[i][m]);
    }
    return items;
}

std::optional<PlanItems> Trials::from_journal(const JournalKey& key) const {
    const JournalRecord* const record = journal_ == nullptr ? nullptr : journal_->find(key);
    if (record == nullptr) return std::nullopt;
    PlanItems items;
    for (const Measure& measure : measures_) {
        const auto it = std::ranges::find(record->scores, measure.name,
                                          &std::pair<std::string, ItemScores>::first);
        if (it == record->scores.end()) {
            fail("{}: the result of {} lacks the measure {}", journal_->path(), key.plan,
                 measure.name);
        }
        items.push_back(it->second);
    }
    return items;
}

/// Adds a piece to what is known of plans that have all before it; false when stopped.
bool Trials::score_piece(const std::vector<LayerPlan>& plans, TrialPart part, size_t piece,
                         const Scorer::Progress& progress) {
    const std::string name = piece_name(part, piece);
    const auto add = [&](const std::string& plan, const PlanItems& items) {
        Known& known = known_[{plan, part}];
        known.items.resize(measures_.size());
        for (size_t m = 0; m < items.size(); ++m) append(known.items[m], items[m]);
        ++known.n_pieces;
    };
    const auto write = [&](const std::string& plan, const PlanItems& items) {
        if (journal_ == nullptr) return;
        JournalRecord record{.key = {.plan = plan, .rung = name}, .scores = {}};
        for (size_t m = 0; m < measures_.size(); ++m) {
            record.scores.emplace_back(measures_[m].name, items[m]);
        }
        journal_->append(record);
    };
    std::vector<LayerPlan> run{plans.front()};            // the reference, even where it is known
    std::vector<std::pair<size_t, std::string>> missing;  // place in `run`, and canonical plan
    for (size_t i = 0; i < plans.size(); ++i) {
        const std::string plan = plans[i].canonical();
        const Known* const known = find(plan, part);
        if ((known == nullptr ? 0 : known->n_pieces) != piece) continue;
        if (std::ranges::find(missing, plan, &std::pair<size_t, std::string>::second) !=
            missing.end()) {
            continue;
        }
        if (const auto items = from_journal({.plan = plan, .rung = name})) {
            add(plan, *items);
            continue;
        }
        if (const auto items = given(plan, part, piece)) {
            write(plan, *items);
            add(plan, *items);
            continue;
        }
        if (i > 0) run.push_back(plans[i]);
        missing.emplace_back(run.size() - 1, plan);
    }
    if (missing.empty()) return true;
    const std::vector<size_t>& ends = piece_ends_.at(part);
    const size_t begin = piece == 0 ? 0 : ends[piece - 1];
    const auto some = std::span(sequences(part)).subspan(begin, ends[piece] - begin);
    const PlanScores found = scorer_.score(run, workload_, some, progress);
    if (!found.complete) return false;
    for (const auto& [place, plan] : missing) {
        const PlanItems& items = found.by_plan.at(place);
        write(plan, items);
        add(plan, items);
    }
    return true;
}

std::optional<std::vector<PlanItems>> Trials::score(const std::vector<LayerPlan>& plans,
                                                    TrialPart part,
                                                    const Scorer::Progress& progress) {
    if (sequences(part).empty()) fail("no items of the {} part to score plans on", name_of(part));
    return score_pieces(piece_ends_.at(part).size(), plans, part, progress);
}

std::optional<std::vector<PlanItems>> Trials::score_first(size_t n_sequences,
                                                          const std::vector<LayerPlan>& plans,
                                                          const Scorer::Progress& progress) {
    const std::vector<size_t>& ends = piece_ends_.at(TrialPart::selection);
    const auto end = std::ranges::find(ends, n_sequences);
    if (end == ends.end()) fail("{} sequences are none of the steps", n_sequences);
    const auto n_pieces = static_cast<size_t>(end - ends.begin()) + 1;
    return score_pieces(n_pieces, plans, TrialPart::selection, progress);
}

std::optional<std::vector<PlanItems>> Trials::score_pieces(size_t n_pieces,
                                                           const std::vector<LayerPlan>& plans,
                                                           TrialPart part,
                                                           const Scorer::Progress& progress) {
    identity_ = plans.front().canonical();
    if (part == TrialPart::selection) {
        for (const LayerPlan& plan : plans) {
            const std::string name = plan.canonical();
            if (name == identity_ || find(name, part) != nullptr) continue;
            if (std::ranges::find(tried_, name) == tried_.end()) tried_.push_back(name);
        }
    }
    size_t first = n_pieces;
    for (const LayerPlan& plan : plans) {
        const Known* const known = find(plan.canonical(), part);
        first = std::min(first, known == nullptr ? 0 : known->n_pieces);
    }
    for (size_t k = first; k < n_pieces; ++k) {
        const auto piece_progress = [&](double fraction) {
            const auto done = static_cast<double>(k - first) + fraction;
            return !progress || progress(done / static_cast<double>(n_pieces - first));
        };
        if (!score_piece(plans, part, k, piece_progress)) return std::nullopt;
    }
    std::vector<PlanItems> result;
    for (const LayerPlan& plan : plans) result.push_back(*find(plan, part));
    return result;
}

size_t Trials::n_plans() const { return tried_.size(); }

std::map<std::string, bool> Trials::survivors(size_t measure, double alpha) const {
    std::vector<std::string> plans;
    std::vector<double> p;
    for (const std::string& plan : tried_) {
        // The interval is not asked for.
        const auto d = difference(plan, TrialPart::selection, measure, {.n_resamples = 1});
        if (!d) continue;
        plans.push_back(plan);
        p.push_back(d->p);
    }
    const std::vector<bool> survive = holm_survivors(p, alpha);
    std::map<std::string, bool> by_plan;
    for (size_t i = 0; i < plans.size(); ++i) by_plan.emplace(plans[i], survive[i]);
    return by_plan;
}

std::vector<ProfileMeasure> Trials::profile_measures(const LayerPlan& plan, double alpha) const {
    std::vector<ProfileMeasure> list;
    const auto items = [&](const std::string& name, TrialPart part, size_t measure) {
        const Known* const known = find(name, part);
        const bool any = known != nullptr && known->items[measure].size() > 0;
        return any ? &known->items[measure] : nullptr;
    };
    const std::string name = plan.canonical();
    for (size_t m = 0; m < measures_.size(); ++m) {
        ProfileMeasure it{.measure = measures_[m], .data = {}};
        if (const auto d = difference(plan, TrialPart::selection, m)) {
            const ItemScores* const own = items(name, TrialPart::selection, m);
            it.n_selection = own->size();
            it.selection = mean_of(*own);
            it.identity_selection =
                mean_of(first_of(*items(identity_, TrialPart::selection, m), own->size()));
            it.selection_difference = difference_of(*d);
            const auto survive = survivors(m, alpha);
            if (const auto found = survive.find(name); found != survive.end()) {
                it.survives = found->second;
            }
        }
        if (const auto d = difference(plan, TrialPart::validation, m)) {
            const ItemScores* const own = items(name, TrialPart::validation, m);
            it.n_validation = own->size();
            it.validation = mean_of(*own);
            it.identity_validation = mean_of(*items(identity_, TrialPart::validation, m));
            it.validation_difference = difference_of(*d);
        }
        list.push_back(std::move(it));
    }
    return list;
}

}  // namespace pleat
