#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/lab_options.h"
#include "cli/result_files.h"
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

    /// Throws Error where the profile or the journal cannot be written or would go over something.
    void check_files(ResultFiles& files) const;
    /// Do results go anywhere but to the terminal?
    bool keeps_results() const { return !journal_path().empty(); }
    /// Warns that a run that is broken off has to begin anew, where there is no journal.
    void warn_without_journal(bool quiet) const;

    double validation() const { return validation_; }
    uint64_t seed() const { return seed_; }
    const std::string& profile() const { return profile_; }

    /// All that decides a score. What a command looks for decides which plans are scored, and takes
    /// no part, so that another search may go on from the same journal.
    Settings settings(const ScoringOptions& scoring, const ContextOptions& context,
                      const CacheSettings& cache) const;
    /// None without --profile and a flag for it.
    std::optional<Journal> open_journal(JournalHeader header) const;

  private:
    /// Beside the profile unless a flag says where; empty without both.
    std::string journal_path() const;

    double validation_ = 0.5;
    uint64_t seed_ = 1;
    std::string profile_;
    std::string journal_;
    std::string journal_flag_;
};

/// Generated questions about what a text said, beside what plans are scored on: perplexity hides
/// that a model no longer finds what it read.
class RetrievalOptions {
  public:
    void add(CLI::App& app, const std::string& group);

    /// Adds them to `workload` and `data` where a flag asks for them, or else for models that lose
    /// retrieval unseen, unless `workload` has probes of the kind retrieval. Throws Error when it
    /// has and a flag wants none.
    void add_questions(Workload& workload, std::vector<DataSource>& data,
                       const Tokenizer& tokenizer, const ModelShape& shape, uint64_t seed) const;

  private:
    bool wanted_ = false;
    bool unwanted_ = false;
    size_t n_questions_ = 64;
};

/// Says that a run was interrupted and how to go on, and ends the command.
[[noreturn]] void end_interrupted(const std::optional<Journal>& journal);

}  // namespace pleat::cli
