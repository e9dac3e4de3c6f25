#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arch/registry.h"
#include "base/error.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/lab_options.h"
#include "cli/numbers.h"
#include "cli/options.h"
#include "cli/trial_options.h"
#include "lab/fingerprint.h"
#include "lab/import.h"
#include "lab/profile.h"
#include "lab/report.h"
#include "lab/scan.h"
#include "lab/terminal_heatmap.h"
#include "lab/text_output.h"

namespace pleat::cli {
namespace {

std::string score_text(const std::optional<Score>& score) {
    return score ? fmt::format("{} +/- {}", decimals(score->value), decimals(score->error)) : "";
}

std::string difference_text(const std::optional<Difference>& d) {
    return d ? fmt::format("{:+.4f} [{:+.4f}, {:+.4f}]", d->value, d->low, d->high) : "";
}

std::string table(const ReportData& data, size_t measure, size_t n_rows) {
    const ReportMeasure& m = data.measures[measure];
    std::string text = fmt::format(
        "{}: identity {}{}\n", m.measure.name, score_text(m.identity.selection),
        m.identity.validation ? ", on validation " + score_text(m.identity.validation) : "");
    text += fmt::format("{:<26} {:>8} {:>6}  {:<20} {:<28} {:<28} {}\n", "plan", "compute", "cache",
                        "selection", "difference", "on validation", "survives");
    for (size_t i = 0; i < std::min(n_rows, data.rows.size()); ++i) {
        const ReportRow& row = data.rows[i];
        const ReportScore& s = row.scores[measure];
        text += fmt::format("{:<26} {:>8.3f} {:>6.3f}  {:<20} {:<28} {:<28} {:<8} {}\n", row.flag,
                            row.compute_ratio, row.kv_ratio, score_text(s.selection),
                            difference_text(s.difference), difference_text(s.validation_difference),
                            !s.survives   ? ""
                            : *s.survives ? "yes"
                                          : "no",
                            row.set_aside);
    }
    return text;
}

/// A progress line for stage after stage; false once Ctrl-C was pressed.
class StageLine {
  public:
    StageLine(bool quiet, const InterruptGuard& interrupt) : quiet_(quiet), interrupt_(interrupt) {}

    bool show(const std::string& stage, double fraction) {
        if (stage != stage_) line_.emplace(stage, quiet_);
        stage_ = stage;
        line_->show(fraction);
        return !interrupt_.interrupted();
    }
    void end() { line_.reset(); }

  private:
    bool quiet_;
    const InterruptGuard& interrupt_;
    std::string stage_;
    std::optional<ProgressLine> line_;
};

struct ScanCommand {
    const CLI::App* app = nullptr;
    ModelArgument model;
    ContextOptions context;
    ScoringOptions scoring;
    ScanOptions options;
    TrialOptions trial;
    std::string report_path;
    std::string json_path;
    std::vector<std::string> imports;
    size_t n_rows = 20;

    void run() {
        if (!imports.empty()) {
            import();
            return;
        }
        for (const std::string& warning : context.warnings()) {
            fmt::print(stderr, "warning: {}\n", warning);
        }
        const std::vector<std::string> inputs = scoring.inputs(model.model());
        check_files(inputs);
        load_backends_from_environment();
        const auto opened = open_model(model.model(), context.model_options());
        const ModelShape& shape = opened->shape();
        const Tokenizer tokenizer = Tokenizer::open(model.model());
        const Workload workload = scoring.workload(tokenizer);
        scoring.warn_of_length(workload, shape);
        const ContextSettings settings = context.settings(shape);
        const Fingerprint fingerprint = fingerprint_of(opened->file(), shape);
        const auto named = trial.settings(scoring, context, settings.cache);

        Split split = split_workload(workload, trial.validation(), trial.seed());
        const auto blocks = scan_blocks(scan_range(shape.n_layer, options.boundary),
                                        options.max_block, options.stride);
        const std::vector<Rung> rungs =
            halving_rungs(split.selection.size(), blocks.size(), options.budget);
        const LayerPlan identity = LayerPlan::resolve({}, shape);
        const Scorer scorer(opened, scoring.sweep_settings(settings));
        scoring.check_answers(scorer, identity, workload);
        trial.warn_without_journal(context.quiet());
        std::optional<Journal> journal = trial.open_journal({.command = "scan",
                                                             .model = fingerprint,
                                                             .measures = workload.measures(),
                                                             .data = scoring.sources(workload),
                                                             .settings = named});
        const InterruptGuard interrupt;
        StageLine line(context.quiet(), interrupt);
        IdentityFirst first =
            order_by_identity(scorer, identity, workload, split, trial.seed(),
                              [&](double fraction) { return line.show("identity", fraction); });
        if (!first.complete) end_interrupted(journal);
        Trials trials(scorer, workload, split, journal ? &*journal : nullptr, steps_of(rungs));
        trials.give(identity, std::move(first.by_sequence));
        options.seed = trial.seed();
        Scan scan(shape, trials, rungs, options);
        const ScanResult result = scan.run(
            [&](const std::string& stage, double fraction) { return line.show(stage, fraction); });
        if (!result.complete) end_interrupted(journal);
        line.end();

        ReportData data = scan.report(result, settings.cache);
        data.title = "Scan of repeated blocks";
        data.command = fmt::format("{}", fmt::join(command_line(*app), " "));
        data.settings.insert(data.settings.end(), named.begin(), named.end());
        data.model = fmt::format("{}, {}, {} layers, {}",
                                 std::filesystem::path(model.model()).filename().string(),
                                 shape.architecture, shape.n_layer, shape.name);
        print(data, result.rank_measure);
        if (!report_path.empty()) write_text(report_path, report_html(data));
        if (!json_path.empty()) write_text(json_path, report_json(data));
        if (!trial.profile().empty()) {
            save_profile(data, result, trials, fingerprint, workload, settings);
        }
    }

    void print(const ReportData& data, size_t measure) const {
        for (const std::string& note : data.notes) fmt::print("{}\n", note);
        const bool terminal = ::isatty(STDOUT_FILENO) != 0;
        for (const Heatmap& map : heatmaps(data)) {
            if (map.name != data.measures[measure].measure.name) continue;
            fmt::print(
                "\n{}\n",
                terminal_heatmap(data, map, terminal ? HeatmapStyle::ansi : HeatmapStyle::plain));
        }
        fmt::print("{}", table(data, measure, n_rows));
        for (size_t m = 0; m < data.measures.size(); ++m) {
            if (m == measure) continue;
            fmt::print("\n{}", table(data, m, std::min<size_t>(n_rows, 5)));
        }
    }

    /// Of the best block, or of the identity plan where no block is better.
    void save_profile(const ReportData& data, const ScanResult& result, const Trials& trials,
                      const Fingerprint& fingerprint, const Workload& workload,
                      const ContextSettings& settings) const {
        const ReportRow& best = data.rows.front();
        const ReportMeasure& ranked = data.measures[result.rank_measure];
        const auto& difference = best.scores[result.rank_measure].difference;
        const bool gains =
            difference &&
            (ranked.measure.higher_is_better ? difference->value > 0.0 : difference->value < 0.0);
        const PlanItems& seen = *trials.find(result.plans.front().plan, TrialPart::selection);
        Profile profile{.plan = "layers:" + (gains ? best.canonical : trials.identity()),
                        .model = fingerprint};
        for (size_t m = 0; m < data.measures.size(); ++m) {
            const ReportMeasure& measure = data.measures[m];
            ProfileMeasure it{.measure = measure.measure,
                              .data = "",
                              .n_selection = gains ? seen[m].size() : measure.n_selection,
                              .n_validation = measure.n_validation,
                              .selection = measure.identity.selection,
                              .validation = measure.identity.validation,
                              .identity_selection = measure.identity.selection,
                              .identity_validation = measure.identity.validation};
            if (gains) {
                const ReportScore& s = best.scores[m];
                it.selection = s.selection;
                it.validation = s.validation;
                it.selection_difference = s.difference;
                it.validation_difference = s.validation_difference;
                it.survives = s.survives;
            }
            profile.measures.push_back(std::move(it));
        }
        profile.data = scoring.sources(workload);
        profile.n_plans_tried = result.plans.size();
        profile.settings = data.settings;
        profile.provenance = provenance_here(command_line(*app), settings.n_threads_batch);
        profile.notes = data.notes;
        write_profile(trial.profile(), profile);
        if (!gains) {
            fmt::print(
                "\nno block is better than the identity plan in {}: {} holds the identity "
                "plan\n",
                ranked.measure.name, trial.profile());
            return;
        }
        const bool survives = std::ranges::any_of(
            best.scores, [](const ReportScore& s) { return s.survives.value_or(false); });
        fmt::print("\nprofile of {} in {}{}\n", best.flag, trial.profile(),
                   survives ? "" : "; it did not survive the check: its gain may be luck");
    }

    void check_files(const std::vector<std::string>& inputs) const {
        ResultFiles files(inputs);
        trial.check_files(files);
        files.add(report_path, "--report", report_page_mark);
        files.add(json_path, "--report-json", report_mark);
    }

    void import() const {
        if (scoring.given() || trial.keeps_results()) {
            fail(
                "--import shows results that are there and scans nothing: leave out --text, "
                "--probes, -o and --profile; a new scan's --report-json can be imported, too");
        }
        check_files(imports);
        std::optional<int32_t> n_layer;
        if (model.given()) n_layer = open_model(model.model())->shape().n_layer;
        ReportData data = import_results(imports, n_layer);
        data.title = "Imported results";
        if (data.rows.empty()) fail("--import: the files hold no plan that could be shown");
        if (report_path.empty() && json_path.empty()) {
            fail("--import: name where to write with --report FILE.html or --report-json FILE");
        }
        if (!report_path.empty()) write_text(report_path, report_html(data));
        if (!json_path.empty()) write_text(json_path, report_json(data));
        for (const std::string& note : data.notes) fmt::print("{}\n", note);
        fmt::print("{} plans of {} file{}\n", data.rows.size(), imports.size(),
                   imports.size() == 1 ? "" : "s");
    }
};

}  // namespace

void add_scan(CLI::App& app) {
    auto command = std::make_shared<ScanCommand>();
    CLI::App* const sub = app.add_subcommand(
        "scan", "Score every repeat of a block of layers, and say which are worth it");
    command->app = sub;
    command->model.add(*sub);
    command->scoring.add(*sub);
    command->scoring.add_measures(*sub);
    const std::string group = "Scan";
    ScanOptions& o = command->options;
    sub->add_option("--max-block", o.max_block, "Layers of a block at most")
        ->check(whole_number(1, 512))
        ->capture_default_str()
        ->group(group);
    sub->add_option("--stride", o.stride,
                    "Coarse pass over every stride-th begin and end, then all around the best")
        ->check(whole_number(1, 64))
        ->capture_default_str()
        ->group(group);
    sub->add_flag("--boundary", o.boundary,
                  "Also blocks with the first and last layers, which often break a model")
        ->group(group);
    sub->add_option("--budget", o.budget,
                    "Work allowed, as a fraction of scoring every plan on every item: poor plans "
                    "stop early (successive halving)")
        ->check(CLI::Range(0.001, 1.0))
        ->capture_default_str()
        ->group(group);
    command->trial.add(*sub, group, "-o,--out,--journal");
    sub->add_option("--winners", o.n_winners, "Best plans that are scored on the kept items")
        ->check(whole_number(1, 10000))
        ->capture_default_str()
        ->group(group);
    sub->add_option("--rank-by", o.rank_by, "Measure to rank by (default: right answers, else nll)")
        ->group(group);
    sub->add_option("--top", command->n_rows, "Rows of the table printed")
        ->capture_default_str()
        ->group(group);
    sub->add_option("--report", command->report_path, "HTML report")->group(group);
    sub->add_option("--report-json", command->json_path, "The report's data as JSON")->group(group);
    sub->add_option("--import", command->imports,
                    "Result files of RYS or llm-circuit-finder (JSON) to show in a report instead; "
                    "MODEL says how many layers their model has")
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->group(group);
    command->context.add(*sub, false);
    sub->footer(
        "Examples:\n"
        "  pleat scan model.gguf --text text.txt -o scan.jsonl --report scan.html\n"
        "  pleat scan model.gguf --probes arithmetic.jsonl --budget 0.3 --profile best.json\n"
        "  pleat scan model.gguf --import math_results.json --import eq_results.json "
        "--report old.html");
    sub->callback([command] { command->run(); });
}

}  // namespace pleat::cli
