#include "lab/trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"

namespace pleat {
namespace {

const char* rung_of(TrialPart part) {
    return part == TrialPart::selection ? "selection" : "validation";
}

/// A piece has at least so many sequences, since what runs together is quicker.
constexpr size_t least_piece = 8;
constexpr size_t most_pieces = 8;

std::string piece_rung(TrialPart part, size_t piece, size_t n_pieces) {
    return fmt::format("{} {} of {}", rung_of(part), piece + 1, n_pieces);
}

void append(ItemScores& to, const ItemScores& from) {
    to.sum.insert(to.sum.end(), from.sum.begin(), from.sum.end());
    to.weight.insert(to.weight.end(), from.weight.begin(), from.weight.end());
}

Difference difference_of(const ItemScores& plan, const ItemScores& identity) {
    const PairedDifference d = paired_difference(plan, identity);
    return {.value = d.mean, .low = d.low, .high = d.high};
}

/// Which part of a source is empty, for the message; empty when none is.
std::string_view missing_part(bool selection, bool validation, double fraction) {
    if (!selection && fraction < 1) return "selection";
    if (!validation && fraction > 0) return "validation";
    return {};
}

}  // namespace

Split split_workload(const Workload& workload, double fraction, uint64_t seed) {
    Split split = split_items(workload.ids(), fraction, seed);
    std::set<size_t> in_selection;
    std::set<size_t> in_validation;
    for (const size_t i : split.selection) in_selection.insert(workload.sequences()[i].source);
    for (const size_t i : split.validation) in_validation.insert(workload.sequences()[i].source);
    for (const ScoredSequence& sequence : workload.sequences()) {
        const std::string_view missing =
            missing_part(in_selection.contains(sequence.source),
                         in_validation.contains(sequence.source), fraction);
        if (missing.empty()) continue;
        fail(
            "no item of {} falls into the {} part: there are too few; a longer text, a smaller -c, "
            "more probes or another --seed would give it some",
            workload.measures()[workload.first_measure(sequence.source)].name, missing);
    }
    return split;
}

Trials::Trials(const Scorer& scorer, const Workload& workload, Split split, Journal* journal)
    : scorer_(scorer),
      workload_(workload),
      split_(std::move(split)),
      journal_(journal),
      measures_(workload.measures()) {
    if (split_.selection.empty()) fail("no items to choose plans by");
}

const PlanItems* Trials::find(const JournalKey& key) const {
    const auto it = items_.find(key);
    return it == items_.end() ? nullptr : &it->second;
}

const PlanItems* Trials::find(const LayerPlan& plan, TrialPart part) const {
    return find({.plan = plan.canonical(), .rung = rung_of(part)});
}

const PlanItems* Trials::known_piece(const JournalKey& key) {
    if (const auto it = pieces_.find(key); it != pieces_.end()) return &it->second;
    const JournalRecord* const record = journal_ == nullptr ? nullptr : journal_->find(key);
    if (record == nullptr) return nullptr;
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
    return &pieces_.emplace(key, std::move(items)).first->second;
}

/// Scores what is not known of a piece; false when stopped.
bool Trials::score_piece(const std::vector<LayerPlan>& plans, const std::string& rung,
                         std::span<const size_t> sequences, const Scorer::Progress& progress) {
    std::vector<LayerPlan> missing{plans.front()};  // the reference, even where it is known
    std::vector<JournalKey> keys;
    for (size_t i = 0; i < plans.size(); ++i) {
        JournalKey key{.plan = plans[i].canonical(), .rung = rung};
        if (known_piece(key) != nullptr) continue;
        if (i > 0) missing.push_back(plans[i]);
        keys.push_back(std::move(key));
    }
    if (keys.empty()) return true;
    PlanScores found = scorer_.score(missing, workload_, sequences, progress);
    if (!found.complete) return false;
    const size_t first = keys.size() == missing.size() ? 0 : 1;
    for (size_t i = 0; i < keys.size(); ++i) {
        PlanItems& items = found.by_plan.at(first + i);
        if (journal_ != nullptr) {
            JournalRecord record{.key = keys[i], .scores = {}};
            for (size_t m = 0; m < measures_.size(); ++m) {
                record.scores.emplace_back(measures_[m].name, items[m]);
            }
            journal_->append(record);
        }
        pieces_.emplace(keys[i], std::move(items));
    }
    return true;
}

std::optional<std::vector<PlanItems>> Trials::score(const std::vector<LayerPlan>& plans,
                                                    TrialPart part,
                                                    const Scorer::Progress& progress) {
    const std::span<const size_t> sequences =
        part == TrialPart::selection ? split_.selection : split_.validation;
    if (sequences.empty()) fail("no items of the {} part to score plans on", rung_of(part));
    identity_ = plans.front().canonical();
    std::vector<LayerPlan> fresh;
    for (const LayerPlan& plan : plans) {
        if (find(plan, part) == nullptr) fresh.push_back(plan);
    }
    if (!fresh.empty() && fresh.front() != plans.front())
        fresh.insert(fresh.begin(), plans.front());
    const size_t n_pieces = std::clamp<size_t>(sequences.size() / least_piece, 1, most_pieces);
    for (size_t k = 0; !fresh.empty() && k < n_pieces; ++k) {
        const size_t begin = k * sequences.size() / n_pieces;
        const size_t end = (k + 1) * sequences.size() / n_pieces;
        const std::string rung = piece_rung(part, k, n_pieces);
        const auto piece_progress = [&](double fraction) {
            const auto done = static_cast<double>(k) + fraction;
            return !progress || progress(done / static_cast<double>(n_pieces));
        };
        if (!score_piece(fresh, rung, sequences.subspan(begin, end - begin), piece_progress)) {
            return std::nullopt;
        }
        for (const LayerPlan& plan : fresh) {
            const JournalKey whole{.plan = plan.canonical(), .rung = rung_of(part)};
            if (find(whole) != nullptr) continue;
            piece_order_.push_back({.plan = whole.plan, .rung = rung});
        }
    }
    for (const LayerPlan& plan : fresh) {
        const JournalKey whole{.plan = plan.canonical(), .rung = rung_of(part)};
        if (find(whole) != nullptr) continue;
        PlanItems items(measures_.size());
        for (size_t k = 0; k < n_pieces; ++k) {
            const PlanItems& piece =
                pieces_.at({.plan = whole.plan, .rung = piece_rung(part, k, n_pieces)});
            for (size_t m = 0; m < items.size(); ++m) append(items[m], piece[m]);
        }
        items_.emplace(whole, std::move(items));
        order_.push_back(whole);
    }
    std::vector<PlanItems> result;
    for (const LayerPlan& plan : plans) result.push_back(*find(plan, part));
    return result;
}

size_t Trials::n_plans() const {
    const auto n = std::ranges::count_if(order_, [&](const JournalKey& key) {
        return key.rung == rung_of(TrialPart::selection) && key.plan != identity_;
    });
    return static_cast<size_t>(n);
}

std::map<std::string, bool> Trials::survivors(size_t measure, double alpha) const {
    const JournalKey identity{.plan = identity_, .rung = rung_of(TrialPart::selection)};
    std::vector<std::string> plans;
    std::vector<double> p;
    for (const JournalKey& key : order_) {
        if (key.rung != identity.rung || key.plan == identity.plan) continue;
        plans.push_back(key.plan);
        // The interval is not asked for.
        p.push_back(paired_difference(find(key)->at(measure), find(identity)->at(measure),
                                      {.n_resamples = 1})
                        .p);
    }
    const std::vector<bool> survive = holm_survivors(p, alpha);
    std::map<std::string, bool> by_plan;
    for (size_t i = 0; i < plans.size(); ++i) by_plan.emplace(plans[i], survive[i]);
    return by_plan;
}

std::vector<ProfileMeasure> Trials::profile_measures(const LayerPlan& plan, double alpha) const {
    const auto items = [&](const std::string& name, TrialPart part) {
        return find({.plan = name, .rung = rung_of(part)});
    };
    const std::string name = plan.canonical();
    std::vector<ProfileMeasure> list;
    for (size_t m = 0; m < measures_.size(); ++m) {
        ProfileMeasure it{.measure = measures_[m], .data = {}};
        const PlanItems* const own = items(name, TrialPart::selection);
        const PlanItems* const base = items(identity_, TrialPart::selection);
        if (own != nullptr && base != nullptr) {
            it.n_selection = own->at(m).size();
            it.selection = mean_of(own->at(m));
            it.identity_selection = mean_of(base->at(m));
            it.selection_difference = difference_of(own->at(m), base->at(m));
            const auto survive = survivors(m, alpha);
            if (const auto found = survive.find(name); found != survive.end()) {
                it.survives = found->second;
            }
        }
        const PlanItems* const own_check = items(name, TrialPart::validation);
        const PlanItems* const base_check = items(identity_, TrialPart::validation);
        if (own_check != nullptr && base_check != nullptr) {
            it.n_validation = own_check->at(m).size();
            it.validation = mean_of(own_check->at(m));
            it.identity_validation = mean_of(base_check->at(m));
            it.validation_difference = difference_of(own_check->at(m), base_check->at(m));
        }
        list.push_back(std::move(it));
    }
    return list;
}

void Trials::finish() {
    if (journal_ != nullptr) journal_->finish(piece_order_);
}

}  // namespace pleat
