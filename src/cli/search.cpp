#include "lab/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
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
#include "lab/profile.h"
#include "lab/report.h"
#include "lab/trials.h"

namespace pleat::cli {
namespace {

/// Plans of the front that are scored on the validation part.
constexpr size_t max_checked = 24;

std::string score_text(const std::optional<Score>& score) {
    return score ? decimals(score->value) : "";
}

std::string shown(const std::optional<Difference>& d) {
    return d ? difference_text(d->value, d->low, d->high) : "";
}

struct SearchCommand {
    const CLI::App* app = nullptr;
    ModelArgument model;
    ContextOptions context;
    ScoringOptions scoring;
    SearchOptions options;
    std::string max_compute;
    std::string max_kv;
    std::string rank_by;
    RetrievalOptions retrieval;
    TrialOptions trial;
    std::string report_path;
    size_t n_rows = 20;

    static std::optional<double> budget(const std::string& text, std::string_view flag) {
        if (text.empty()) return std::nullopt;
        const double ratio = parse_ratio(text, flag);
        if (ratio == 0) fail("{} {}: expected a ratio above 0", flag, text);
        return ratio;
    }

    void run() {
        options.max_compute = budget(max_compute, "--max-compute");
        options.max_kv = budget(max_kv, "--max-kv");
        for (const std::string& warning : context.warnings()) {
            fmt::print(stderr, "warning: {}\n", warning);
        }
        ResultFiles files(scoring.inputs(model.model()));
        trial.check_files(files);
        if (!report_path.empty()) {
            files.add(report_stem() + ".html", "--report", report_page_mark);
            files.add(report_stem() + ".json", "--report", report_mark);
        }
        load_backends_from_environment();
        const auto opened = open_model(model.model(), context.model_options());
        const ModelShape& shape = opened->shape();
        const ContextSettings settings = context.settings(shape);
        const Tokenizer tokenizer = Tokenizer::open(model.model());
        Workload workload = scoring.workload(tokenizer);
        scoring.warn_of_length(workload, shape);
        std::vector<DataSource> sources = scoring.sources(workload);
        const std::string ranked = rank_by.empty() ? default_rank(workload.measures()) : rank_by;
        retrieval.add_questions(workload, sources, tokenizer, shape, trial.seed());
        const std::vector<Measure> measures = workload.measures();
        const size_t measure = rank_measure(measures, ranked);
        SearchOptions guarded = options;
        guarded.guards = retrieval_guards(measures, measure);
        const Fingerprint fingerprint = fingerprint_of(opened->file(), shape);
        std::optional<Journal> journal =
            trial.open_journal({.command = "search",
                                .model = fingerprint,
                                .measures = measures,
                                .data = sources,
                                .settings = trial.settings(scoring, context, settings.cache)});
        const Scorer scorer(opened, scoring.sweep_settings(settings));
        Trials trials(scorer, workload, split_workload(workload, trial.validation(), trial.seed()),
                      journal ? &*journal : nullptr);
        const LayerPlan identity = LayerPlan::resolve({}, shape);
        scoring.check_answers(scorer, identity, workload);
        trial.warn_without_journal(context.quiet());
        const auto result = measured(trials, identity, shape, settings, measure, guarded);
        if (!result) end_interrupted(journal);
        ReportData data = search_report(*result, options, trials, identity, measure);
        data.title = "Search of repeats and drops";
        data.model = fmt::format("{}, {}, {} layers",
                                 std::filesystem::path(model.model()).filename().string(),
                                 shape.architecture, shape.n_layer);
        const Provenance provenance = provenance_here(command_line(*app), settings.n_threads_batch);
        data.command = provenance.command;
        data.n_layer = shape.n_layer;
        data.settings = trial.settings(scoring, context, settings.cache);
        add_search_settings(data.settings);
        add_notes(*result, data.notes);
        fmt::print("{}", as_text(*result, data));
        if (const auto warning = over_budget(*result)) {
            fmt::print(stderr, "warning: {}\n", *warning);
            data.notes.push_back(*warning);
        }
        if (!report_path.empty()) write_report(report_stem(), data);
        if (trial.profile().empty()) return;
        Profile profile = profile_of(*result, trials, identity, data);
        profile.model = fingerprint;
        profile.data = sources;
        profile.provenance = provenance;
        write_profile(trial.profile(), profile);
    }

    /// Right answers where there are probes, else the negative log-likelihood of the text.
    static std::string default_rank(const std::vector<Measure>& measures) {
        for (const Measure& it : measures) {
            if (it.name.starts_with("exact:") || it.name.starts_with("probe:")) return it.name;
        }
        return measures.front().name;
    }

    static size_t rank_measure(const std::vector<Measure>& measures, const std::string& name) {
        for (size_t m = 0; m < measures.size(); ++m) {
            if (measures[m].name == name) return m;
        }
        std::string names;
        for (const Measure& it : measures) names += (names.empty() ? "" : ", ") + it.name;
        fail("--rank-by {}: the measures are {}", name, names);
    }

    /// Who ranks by retrieval asks for the best of what a budget leaves of it.
    static std::vector<size_t> retrieval_guards(const std::vector<Measure>& measures,
                                                size_t rank_measure) {
        const auto is_retrieval = [&](size_t m) {
            return measures[m].name.ends_with(":retrieval");
        };
        std::vector<size_t> guards;
        for (size_t m = 0; m < measures.size() && !is_retrieval(rank_measure); ++m) {
            if (is_retrieval(m)) guards.push_back(m);
        }
        return guards;
    }

    void add_search_settings(TrialOptions::Settings& settings) const {
        const auto add = [&](const char* name, const auto& value) {
            settings.emplace_back(name, fmt::to_string(value));
        };
        add("width", options.width);
        add("depth", options.depth);
        add("pool", options.pool);
        add("max_block", options.max_block);
        add("max_new", options.max_new);
        add("drop_ffn", options.drop_ffn);
        if (options.max_compute) add("max_compute", *options.max_compute);
        if (options.max_kv) add("max_kv", *options.max_kv);
    }

    /// Nothing when interrupted.
    std::optional<SearchResult> measured(Trials& trials, const LayerPlan& identity,
                                         const ModelShape& shape, const ContextSettings& settings,
                                         size_t measure, const SearchOptions& how) const {
        const InterruptGuard interrupt;
        const auto score = [&](const std::string& title, const std::vector<LayerPlan>& plans,
                               TrialPart part) {
            ProgressLine line(title, context.quiet());
            return trials.score(plans, part, [&](double fraction) {
                line.show(fraction);
                return !interrupt.interrupted();
            });
        };
        int depth = 0;
        SearchResult result =
            search(shape, settings.cache, trials.measures(), measure, how,
                   [&](const std::vector<LayerPlan>& plans) {
                       return score(fmt::format("depth {}: {} plans", ++depth, plans.size() - 1),
                                    plans, TrialPart::selection);
                   });
        if (!result.complete) return std::nullopt;
        if (trials.has_validation()) {
            std::vector<LayerPlan> plans{identity};
            for (const size_t i : result.front) {
                if (plans.size() <= max_checked) plans.push_back(result.plans[i].plan);
            }
            if (result.nearest) plans.push_back(result.plans[*result.nearest].plan);
            if (!score("validation", plans, TrialPart::validation)) return std::nullopt;
        }
        return result;
    }

    void add_notes(const SearchResult& result, std::vector<std::string>& notes) const {
        const auto n_lost = std::ranges::count_if(result.plans, [&](const SearchedPlan& it) {
            return within_budget(it, options) && !it.worse.empty();
        });
        if (n_lost > 0) {
            notes.push_back(
                fmt::format("passed over for retrieval questions answered significantly worse than "
                            "by the identity plan: {} within the budget",
                            n_lost));
        }
        if (result.best) {
            notes.push_back(
                fmt::format("chosen: {}", state_flags(result.plans[*result.best].state)));
        } else if (result.identity_within) {
            notes.emplace_back("chosen: the identity plan, which none of the others beats");
        }
    }

    /// What came of budgets that no plan keeps.
    std::optional<std::string> over_budget(const SearchResult& result) const {
        if (result.best || result.identity_within) return std::nullopt;
        const SearchedPlan* const nearest =
            result.nearest ? &result.plans[*result.nearest] : nullptr;
        std::string asked;
        std::string reached;
        const auto add = [&](const char* name, const std::optional<double>& most, double ratio) {
            if (!most) return;
            const char* const comma = asked.empty() ? "" : ", ";
            asked += fmt::format("{}{} {:.4g}", comma, name, *most);
            reached += fmt::format("{}{:.3f}", comma, ratio);
        };
        add("--max-compute", options.max_compute, nearest == nullptr ? 1.0 : nearest->compute);
        add("--max-kv", options.max_kv, nearest == nullptr ? 1.0 : nearest->kv);
        return fmt::format("no plan is within the budget: asked {}, reached {} with {}; {}", asked,
                           reached,
                           nearest == nullptr ? "the identity plan" : state_flags(nearest->state),
                           result.reachable ? "a greater --depth may reach further"
                                            : "not even all drops together would reach it");
    }

    bool affordable(const ReportRow& row) const {
        return (!options.max_compute || row.compute_ratio <= *options.max_compute) &&
               (!options.max_kv || row.kv_ratio <= *options.max_kv);
    }

    std::string as_text(const SearchResult& result, const ReportData& data) const {
        const ReportMeasure& m = data.measures.front();
        std::string text = fmt::format("{} plans tried\n{}: identity {}", data.n_plans_tried,
                                       m.measure.name, score_text(m.identity.selection));
        if (m.identity.validation) {
            text += fmt::format(", on validation {}", score_text(m.identity.validation));
        }
        text += fmt::format("\n{:<52} {:>7} {:>7}  {:<9} {:<28} {:<28} {}\n", "plan", "compute",
                            "cache", "selection", "difference", "on validation", "survives");
        const auto line = [](const ReportRow& row) {
            const ReportScore& s = row.scores.front();
            return fmt::format("{:<52} {:>7.3f} {:>7.3f}  {:<9} {:<28} {:<28} {:<8} {}\n", row.flag,
                               row.compute_ratio, row.kv_ratio, score_text(s.selection),
                               shown(s.difference), shown(s.validation_difference),
                               *s.survives ? "yes" : "no", row.set_aside);
        };
        const auto line_of = [&](size_t plan) {
            const std::string canonical = result.plans[plan].plan.canonical();
            return line(*std::ranges::find(data.rows, canonical, &ReportRow::canonical));
        };
        size_t n_shown = 0;
        size_t n_over = 0;
        for (const ReportRow& row : data.rows) {
            if (!affordable(row)) {
                ++n_over;
            } else if (n_shown++ < n_rows) {
                text += line(row);
            }
        }
        if (n_over > 0) text += fmt::format("and {} that are over the budget\n", n_over);
        if (result.nearest) {
            text += "nearest:\n" + line_of(*result.nearest);
        }
        if (!result.front.empty()) {
            text += "no other plan within the budget is better and as cheap:\n";
        }
        for (const size_t i : result.front) text += line_of(i);
        for (const std::string& note : data.notes) text += note + "\n";
        return text;
    }

    std::string report_stem() const {
        const std::filesystem::path path(report_path);
        const bool named = path.extension() == ".html" || path.extension() == ".json";
        return named ? std::filesystem::path(path).replace_extension().string() : report_path;
    }

    static Profile profile_of(const SearchResult& result, const Trials& trials,
                              const LayerPlan& identity, const ReportData& data) {
        const std::optional<size_t> chosen = result.best ? result.best : result.nearest;
        const LayerPlan& plan = chosen ? result.plans[*chosen].plan : identity;
        Profile profile{.plan = chosen ? "layers:" + plan.canonical() : "", .model = {}};
        profile.measures = trials.profile_measures(plan);
        profile.n_plans_tried = result.plans.size();
        profile.settings = data.settings;
        profile.settings.emplace_back("rank_by", data.measures.front().measure.name);
        profile.notes = data.notes;
        return profile;
    }
};

}  // namespace

void add_search(CLI::App& app) {
    auto command = std::make_shared<SearchCommand>();
    CLI::App* const sub = app.add_subcommand(
        "search",
        "Look for plans of repeats and drops together, under budgets of compute and cache");
    command->app = sub;
    command->model.add(*sub);
    command->scoring.add(*sub);
    const std::string group = "Search";
    SearchOptions& o = command->options;
    const auto count = [&](const char* name, auto& target, int64_t most, const char* help) {
        sub->add_option(name, target, help)
            ->check(whole_number(1, most))
            ->capture_default_str()
            ->group(group);
    };
    count("--width", o.width, 100000, "Plans that go on from one depth to the next");
    count("--depth", o.depth, 64, "Moves of a plan at most: repeats and drops together");
    count("--pool", o.pool, 100000, "Best single blocks that are put into other plans");
    count("--max-block", o.max_block, 512, "Layers of a block at most");
    count("--max-new", o.max_new, 1000000, "Plans scored at each depth after the first");
    sub->add_option("--max-compute", command->max_compute,
                    "FLOPs per token at most, of the identity plan's: as 1.15 or 115%")
        ->type_name("RATIO")
        ->group(group);
    sub->add_option("--max-kv", command->max_kv,
                    "Cache bytes at most, of the identity plan's: as 0.8 or 80%")
        ->type_name("RATIO")
        ->group(group);
    sub->add_flag("--drop-ffn", o.drop_ffn, "Drop FFNs too")->group(group);
    sub->add_option("--rank-by", command->rank_by,
                    "Measure to rank by (default: right answers where there are probes, else nll)")
        ->group(group);
    command->retrieval.add(*sub, group);
    command->trial.add(*sub, group);
    sub->add_option("--top", command->n_rows, "Rows of the table printed")
        ->capture_default_str()
        ->group(group);
    sub->add_option("--report", command->report_path,
                    "Write FILE.html and FILE.json with every plan that was tried")
        ->group(group);
    command->context.add(*sub, false);
    sub->footer(
        "Depth 1 scores every single block and every single drop; each later depth adds\n"
        "one of the best blocks, or one more drop, to each of the best plans. With a\n"
        "budget a plan first drops until there is room, then repeats.\n"
        "Examples:\n"
        "  pleat search model.gguf --text text.txt --profile p.json --report r.html\n"
        "  pleat search model.gguf --probes math.jsonl --max-compute 1.15 --max-kv 1.0\n"
        "  pleat search model.gguf --text text.txt --max-kv 0.8 --depth 6 --width 12");
    sub->callback([command] { command->run(); });
}

}  // namespace pleat::cli
