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

/// The identity plan's scores on the selection part, by sequence.
struct IdentityFirst {
    std::vector<PlanItems> by_sequence;
    bool complete = true;  ///< false: stopped
};
/// Scores the identity plan on the selection part and puts this in an order, which the seed
/// decides, whose beginnings are samples of all its sequences, as hard as these on average
/// (balanced_order). What plans are scored on first is then as good as few items can be.
IdentityFirst order_by_identity(const Scorer& scorer, const LayerPlan& identity,
                                const Workload& workload, Split& split, uint64_t seed,
                                const Scorer::Progress& progress = {});

/// Splits a workload's sequences by their ids; with a fraction of 0 there is no validation. A text
/// or kind of probe that the hash leaves out of a part gives one of its sequences to it, and throws
/// Error where it has only one. The selection part comes in an order that the seed decides, so that
/// its first sequences are a sample of all.
Split split_workload(const Workload& workload, double fraction, uint64_t seed);

/// The plans that a search tries, scored together and once: what was tried before, or is in the
/// journal, is not computed again.
class Trials {
  public:
    /// All are borrowed; the journal may be null. `steps`, ascending: of how many sequences of the
    /// selection part scores may be asked for, beside all.
    Trials(const Scorer& scorer, const Workload& workload, Split split, Journal* journal,
           std::span<const size_t> steps = {});

    /// What is known of a plan on the selection part before anything is scored: by sequence, in the
    /// part's order.
    void give(const LayerPlan& plan, std::vector<PlanItems> by_sequence);

    const std::vector<Measure>& measures() const { return measures_; }
    /// The first plan that was asked for, as canonical text.
    const std::string& identity() const { return identity_; }
    bool has_validation() const { return !split_.validation.empty(); }
    size_t n_sequences(TrialPart part) const { return sequences(part).size(); }

    /// By plan. The first one is the identity plan, which kl and top1 compare with. What is not
    /// known yet is scored together, in pieces of the items, each of which goes to the journal:
    /// what a kill loses is the piece under way. Nothing when `progress` stopped it.
    std::optional<std::vector<PlanItems>> score(const std::vector<LayerPlan>& plans, TrialPart part,
                                                const Scorer::Progress& progress = {});
    /// The same on the first sequences of the selection part, as many as one of the steps says.
    /// Plans that were scored on more have the items of those, too.
    std::optional<std::vector<PlanItems>> score_first(size_t n_sequences,
                                                      const std::vector<LayerPlan>& plans,
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
    /// The measure's mean on the whole selection part, as far as what the plan was scored on tells
    /// (expected_mean); nothing where that is no item of the measure.
    std::optional<double> expected(const LayerPlan& plan, size_t measure) const;
    /// To the identity plan, on the items that the plan was scored on; nothing where there are
    /// none.
    std::optional<PairedDifference> difference(const LayerPlan& plan, TrialPart part,
                                               size_t measure,
                                               const BootstrapOptions& options = {}) const;

  private:
    /// What is known of a plan on a part: the items of the first pieces.
    struct Known {
        size_t n_pieces = 0;
        PlanItems items;
    };

    const std::vector<size_t>& sequences(TrialPart part) const;
    const Known* find(const std::string& plan, TrialPart part) const;
    std::optional<PairedDifference> difference(const std::string& plan, TrialPart part,
                                               size_t measure,
                                               const BootstrapOptions& options) const;
    std::optional<std::vector<PlanItems>> score_pieces(size_t n_pieces,
                                                       const std::vector<LayerPlan>& plans,
                                                       TrialPart part,
                                                       const Scorer::Progress& progress);
    std::string piece_name(TrialPart part, size_t piece) const;
    std::optional<PlanItems> given(const std::string& plan, TrialPart part, size_t piece) const;
    std::optional<PlanItems> from_journal(const JournalKey& key) const;
    bool score_piece(const std::vector<LayerPlan>& plans, TrialPart part, size_t piece,
                     const Scorer::Progress& progress);

    const Scorer& scorer_;
    const Workload& workload_;
    Split split_;
    Journal* journal_;
    std::vector<Measure> measures_;
    std::string identity_;
    std::map<TrialPart, std::vector<size_t>> piece_ends_;       ///< in sequences of the part
    std::map<std::pair<std::string, TrialPart>, Known> known_;  ///< by canonical plan
    std::vector<std::string> tried_;                            ///< on the selection part
    std::map<std::string, std::vector<PlanItems>> given_;       ///< by plan, then sequence
};

}  // namespace pleat
