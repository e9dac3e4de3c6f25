#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "lab/profile.h"
#include "lab/scorer.h"
#include "lab/workload.h"
#include "text/tokenizer.h"

namespace pleat::cli {

/// What plans are scored on, and how much memory that may take: the flags that eval, scan,
/// calibrate and search share.
class ScoringOptions {
  public:
    void add(CLI::App& app);
    /// --measures, for commands that need none of them.
    void add_measures(CLI::App& app);

    /// Reads texts and probes. Throws Error when there are none, or one cannot be read.
    Workload workload(const Tokenizer& tokenizer) const;
    /// Of prompts and chunks that are longer than the model was trained for.
    void warn_of_length(const Workload& workload, const ModelShape& shape) const;
    /// Before a long run: refuses when the identity plan's answers cannot be read.
    void check_answers(const Scorer& scorer, const LayerPlan& identity,
                       const Workload& workload) const;
    bool generate() const { return generate_; }
    /// Is there a text or probes?
    bool given() const { return !texts_.empty() || !probes_.empty(); }
    SweepSettings sweep_settings(const ContextSettings& context) const;
    /// Every file with its hash.
    std::vector<DataSource> sources(const Workload& workload) const;

    /// The model, texts and probes: what no result may overwrite.
    std::vector<std::string> inputs(const std::string& model) const {
        return inputs(std::vector{model});
    }
    std::vector<std::string> inputs(std::vector<std::string> models) const;
    uint32_t n_ctx() const { return n_ctx_; }
    /// Of each text; none: all.
    std::optional<size_t> max_chunks() const { return max_chunks_; }
    const std::vector<std::string>& texts() const { return texts_; }
    const std::vector<std::string>& probes() const { return probes_; }

  private:
    void add_texts(Workload& workload, const Tokenizer& tokenizer) const;
    std::vector<Probe> read_probes() const;

    std::vector<std::string> texts_;
    std::vector<std::string> probes_;
    uint32_t n_ctx_ = 256;
    std::optional<size_t> max_chunks_;
    std::string memory_ = "1G";
    bool generate_ = false;
    double min_parse_ = 0.5;
    std::vector<std::string> measures_;
};

/// "512M", "2G", "100000": bytes. Throws Error that names the flag.
uint64_t parse_bytes(const std::string& text, std::string_view flag);

/// Progress of a long run on stderr, with the time left: a line that is written over on a terminal,
/// one line a minute elsewhere, nothing when quiet.
class ProgressLine {
  public:
    ProgressLine(std::string title, bool quiet);
    ~ProgressLine();
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;
    void show(double fraction);

  private:
    std::string title_;
    bool quiet_;
    bool terminal_;
    bool shown_ = false;
    double start_;
    double last_ = 0.0;
};

}  // namespace pleat::cli
