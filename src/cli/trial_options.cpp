#include "cli/trial_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>

#include "base/error.h"
#include "base/sha256.h"
#include "cli/interrupt.h"
#include "cli/numbers.h"
#include "lab/probe_generator.h"

namespace pleat::cli {
namespace {

/// Does perplexity alone hide that a model of this kind no longer finds what it read?
bool hides_lost_retrieval(const ModelShape& shape) {
    const bool shares = std::ranges::any_of(
        shape.layers, [](const LayerShape& l) { return l.role == Role::shared_kv_attention; });
    return shape.hybrid() || shares;
}

}  // namespace

void TrialOptions::add(CLI::App& app, const std::string& group, const std::string& journal_flags) {
    journal_flag_ = journal_flags.substr(0, journal_flags.find(','));
    app.add_option("--validation", validation_,
                   "Fraction of chunks and probes that have no say and check the result; 0 = none")
        ->check(CLI::Range(0.0, 0.9))
        ->capture_default_str()
        ->group(group);
    app.add_option("--seed", seed_, "Of the split, of generated questions, and of intervals")
        ->capture_default_str()
        ->group(group);
    app.add_option("--profile", profile_, "Write the plan, for --plan of other commands")
        ->group(group);
    app.add_option(journal_flags, journal_,
                   "Scores as they come; the same command goes on from there (default: beside the "
                   "profile, .journal.jsonl)")
        ->group(group);
}

void TrialOptions::check_files(ResultFiles& files) const {
    files.add(journal_path(), journal_.empty() ? "the journal" : journal_flag_, "");
    files.add(profile_, "--profile", profile_mark);
}

void TrialOptions::warn_without_journal(bool quiet) const {
    if (quiet || keeps_results()) return;
    fmt::print(stderr, "warning: without {} a run that is broken off begins anew\n", journal_flag_);
}

std::string TrialOptions::journal_path() const {
    if (!journal_.empty() || profile_.empty()) return journal_;
    return std::filesystem::path(profile_).replace_extension(".journal.jsonl").string();
}

TrialOptions::Settings TrialOptions::settings(const ScoringOptions& scoring,
                                              const ContextOptions& context,
                                              const CacheSettings& cache) const {
    const std::optional<size_t> chunks = scoring.max_chunks();
    return {{"n_ctx", fmt::to_string(scoring.n_ctx())},
            {"chunks", chunks ? fmt::to_string(*chunks) : "all"},
            {"generate", scoring.generate() ? "yes" : "no"},
            {"validation", fmt::to_string(validation_)},
            {"seed", fmt::to_string(seed_)},
            {"ubatch_size", fmt::to_string(cache.n_ubatch)},
            {"flash_attention", cache.flash_attention ? "yes" : "no"},
            {"cache_type_k", std::string(cache.type_k.name)},
            {"cache_type_v", std::string(cache.type_v.name)},
            {"repack", context.model_options().repack ? "yes" : "no"}};
}

std::optional<Journal> TrialOptions::open_journal(JournalHeader header) const {
    const std::string path = journal_path();
    if (path.empty()) return std::nullopt;
    return Journal::open(path, header);
}

void RetrievalOptions::add(CLI::App& app, const std::string& group) {
    CLI::Option* const with =
        app.add_flag("--retrieval", wanted_,
                     "Generated retrieval questions are part of the criterion (default for "
                     "hybrids and for models with shared K/V, unless --probes has some)")
            ->group(group);
    app.add_flag("--no-retrieval", unwanted_, "They are not, whatever the model")
        ->excludes(with)
        ->group(group);
    app.add_option("--retrieval-questions", n_questions_, "How many are generated")
        ->check(whole_number(8, 100000))
        ->capture_default_str()
        ->group(group);
}

void RetrievalOptions::add_questions(Workload& workload, std::vector<DataSource>& data,
                                     const Tokenizer& tokenizer, const ModelShape& shape,
                                     uint64_t seed) const {
    const bool given = std::ranges::any_of(
        workload.measures(), [](const Measure& m) { return m.name == "exact:retrieval"; });
    if (given && unwanted_) {
        fail("--no-retrieval, but --probes has probes of the kind retrieval");
    }
    if (given || unwanted_ || !(wanted_ || hides_lost_retrieval(shape))) return;
    const std::vector<Probe> probes = retrieval_probes(seed, n_questions_);
    workload.add_probes(probes, tokenizer);
    const std::string text = probe_lines(probes);
    data.push_back({.name = "retrieval (generated)",
                    .sha256 = Sha256().add(std::as_bytes(std::span(text))).hex(),
                    .n_items = probes.size()});
}

void end_interrupted(const std::optional<Journal>& journal) {
    fmt::print(stderr, "interrupted{}\n",
               journal ? "; the same command goes on from " + journal->path() : "");
    throw CLI::RuntimeError(interrupted_status);
}

}  // namespace pleat::cli
