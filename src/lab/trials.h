#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lab/journal.h"
#include "lab/profile.h"
#include "lab/scorer.h"
#include "lab/statistics.h"
#include "lab/workload.h"

namespace pleat {

/// The scores of one plan, by measure.
using PlanItems = std::vector<ItemScores>;

/// The items that choose among plans, and those that check the choice.
enum class TrialPart { selection, validation };

/// Splits a workload's sequences by their ids. Throws Error where a text or a kind of probe would
/// be left out of a part; with a fraction of 0 there is no validation.
Split split_workload(const Workload& workload, double fraction, uint64_t seed);

/// The plans that a search tries, scored together and once: what was tried before, or is in the
/// journal, is not computed again.
class Trials {
  public:
    /// All are borrowed; the journal may be null.
    Trials(const Scorer& scorer, const Workload& workload, Split split, Journal* journal);

    const std::vector<Measure>& measures() const { return measures_; }
    bool has_validation() const { return !split_.validation.empty(); }

    /// By plan. The first one is the identity plan, which kl and top1 compare with. What is not
    /// known yet is scored together, in pieces of the items, each of which goes to the journal:
    /// what a kill loses is the piece under way. Nothing when `progress` stopped it.
    std::optional<std::vector<PlanItems>> score(const std::vector<LayerPlan>& plans, TrialPart part,
                                                const Scorer::Progress& progress = {});

    /// Plans that were scored on the selection part, the identity left out.
    size_t n_plans() const;

    /// What a profile says of a plan that was scored. `survives`: the difference on the selection
    /// part holds after Holm's correction for every plan that was tried.
    std::vector<ProfileMeasure> profile_measures(const LayerPlan& plan, double alpha = 0.05) const;
    /// For one measure, by plan of the selection part in the order in which they were tried.
    std::map<std::string, bool> survivors(size_t measure, double alpha = 0.05) const;
    /// Null when the plan was not scored on the part.
    const PlanItems* find(const LayerPlan& plan, TrialPart part) const;

    /// Puts the journal into the order in which plans were asked for.
    void finish();

  private:
    const PlanItems* find(const JournalKey& key) const;
    const PlanItems* known_piece(const JournalKey& key);
    bool score_piece(const std::vector<LayerPlan>& plans, const std::string& rung,
                     std::span<const size_t> sequences, const Scorer::Progress& progress);

    const Scorer& scorer_;
    const Workload& workload_;
    Split split_;
    Journal* journal_;
    std::vector<Measure> measures_;
    std::string identity_;
    std::map<JournalKey, PlanItems> pieces_;  ///< by plan and "selection 2 of 3", as in the journal
    std::map<JournalKey, PlanItems> items_;   ///< by plan and part
    std::vector<JournalKey> piece_order_;
    std::vector<JournalKey> order_;
};

}  // namespace pleat
