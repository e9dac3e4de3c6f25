#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/lab_options.h"
#include "engine/context.h"
#include "lab/journal.h"
#include "lab/profile.h"
#include "plan_file/fingerprint.h"

namespace pleat::cli {

/// What scan, calibrate and search share: the items that check a choice, and where results go.
class TrialOptions {
  public:
    using Settings = std::vector<std::pair<std::string, std::string>>;

    /// `journal_flags`: what the flag of the journal is called.
    void add(CLI::App& app, const std::string& group,
             const std::string& journal_flags = "--journal");

    /// Throws Error where a result would go over one of the inputs, or cannot be written.
    void check_files(const std::vector<std::string>& inputs) const;

    double validation() const { return validation_; }
    uint64_t seed() const { return seed_; }
    const std::string& profile() const { return profile_; }

    /// All that decides a score. What a command looks for decides which plans are scored, and takes
    /// no part, so that another search may go on from the same journal.
    Settings settings(const ScoringOptions& scoring, const ContextOptions& context,
                      const CacheSettings& cache) const;
    /// Beside the profile unless a flag says where; none without both.
    std::optional<Journal> open_journal(JournalHeader header) const;

  private:
    double validation_ = 0.5;
    uint64_t seed_ = 1;
    std::string profile_;
    std::string journal_;
    std::string journal_flag_;
};

/// Says that a run was interrupted and how to go on, and ends the command.
[[noreturn]] void end_interrupted(const std::optional<Journal>& journal);

/// Does perplexity alone hide that a model of this kind no longer finds what it read?
bool hides_lost_retrieval(const ModelShape& shape);

}  // namespace pleat::cli
