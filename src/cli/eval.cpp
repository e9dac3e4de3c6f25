#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "arch/registry.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/lab_options.h"
#include "cli/numbers.h"
#include "cli/options.h"
#include "cli/result_files.h"
#include "lab/json.h"
#include "lab/scorer.h"
#include "lab/statistics.h"
#include "lab/text_output.h"
#include "plan/cost.h"
#include "plan/cost_ratio.h"

namespace pleat::cli {
namespace {

using nlohmann::ordered_json;

/// One plan of one model.
struct Row {
    std::string model;
    std::string spec;
    LayerPlan plan;
    PlanCost cost;
    PlanCost identity_cost;
    std::vector<Score> scores;
    std::vector<PairedDifference> differences;  ///< to the identity plan of the same model
};

bool is_nll(const Measure& measure) { return measure.name.starts_with("nll"); }

/// What people read: perplexity in place of its logarithm.
std::string shown_name(const Measure& measure) {
    return is_nll(measure) ? "ppl" + measure.name.substr(3) : measure.name;
}

Score shown_score(const Measure& measure, const Score& score) {
    return is_nll(measure) ? perplexity_of(score) : score;
}

/// What the first bytes of a file of answers hold.
constexpr std::string_view answer_mark = "{\"model\":";

/// JSON Lines.
std::string answer_lines(const Row& row, const Workload& workload,
                         const std::vector<ScoredAnswer>& answers) {
    std::string lines;
    for (const ScoredAnswer& it : answers) {
        const ScoredSequence& sequence = workload.sequences()[it.sequence];
        lines += dump_json({{"model", row.model},
                            {"plan", row.plan.canonical()},
                            {"id", sequence.id},
                            {"kind", workload.source_name(sequence.source)},
                            {"text", it.text},
                            {"read", it.result.read},
                            {"score", it.result.score},
                            {"exact", it.result.exact},
                            {"parsed", it.result.parsed},
                            {"cut", it.result.cut}}) +
                 "\n";
    }
    return lines;
}

struct EvalCommand {
    std::vector<std::string> models;
    std::vector<std::string> named_models;  ///< with -m
    std::vector<std::string> specs;
    PlanOptions plan;
    ContextOptions context;
    ScoringOptions scoring;
    uint64_t seed = 1;
    bool json = false;
    std::string answers_path;

    void run() const {
        const std::vector<std::string> paths = model_paths();
        ResultFiles(scoring.inputs(paths)).add(answers_path, "--answers", answer_mark);
        for (const std::string& warning : context.warnings()) {
            fmt::print(stderr, "warning: {}\n", warning);
        }
        load_backends_from_environment();
        std::vector<Row> rows;
        std::vector<Measure> measures;
        std::string answers;
        for (const std::string& path : paths) {
            if (!score_model(path, rows, measures, answers)) {
                fmt::print(stderr, "interrupted\n");
                throw CLI::RuntimeError(interrupted_status);
            }
        }
        if (!answers_path.empty()) write_text(answers_path, answers);
        if (json) {
            fmt::print("{}\n", as_json(rows, measures).dump(2));
        } else {
            fmt::print("{}", as_text(rows, measures));
        }
    }

    /// Those of -m first.
    std::vector<std::string> model_paths() const {
        std::vector<std::string> paths = named_models;
        paths.insert(paths.end(), models.begin(), models.end());
        if (paths.empty()) {
            fail("no model given: name one or more GGUF files as arguments or with -m");
        }
        return paths;
    }

    /// Which plan and, where there are several models, of which.
    void print_warnings(const std::string& path, const std::string& spec,
                        const LayerPlan& layer_plan) const {
        const std::string model = models.size() + named_models.size() > 1
                                      ? std::filesystem::path(path).filename().string() + ", "
                                      : "";
        for (const std::string& warning : layer_plan.warnings()) {
            fmt::print(stderr, "warning: {}{}: {}\n", model, spec, warning);
        }
    }

    std::vector<std::pair<std::string, LayerPlan>> plans_of(const Model& model) const {
        std::vector<std::pair<std::string, LayerPlan>> plans;
        plans.emplace_back("", LayerPlan::resolve({}, model.shape()));
        LayerPlan of_flags = plan.resolve(model);
        if (!of_flags.is_identity()) {
            const std::string text = "layers:" + of_flags.canonical();
            plans.emplace_back(text, std::move(of_flags));
        }
        for (const std::string& spec : specs) {
            LayerPlan resolved = plan.resolve_spec(spec, "--spec", model);
            if (!resolved.is_identity()) plans.emplace_back(spec, std::move(resolved));
        }
        return plans;
    }

    bool score_model(const std::string& path, std::vector<Row>& rows,
                     std::vector<Measure>& measures, std::string& answers) const {
        const auto model = open_model(path, context.model_options());
        const Tokenizer tokenizer = Tokenizer::open(path);
        const Workload workload = scoring.workload(tokenizer);
        scoring.warn_of_length(workload, model->shape());
        measures = workload.measures();
        const ContextSettings settings = context.settings(model->shape());
        const auto named = plans_of(*model);
        std::vector<LayerPlan> plans;
        for (const auto& [spec, layer_plan] : named) {
            plans.push_back(layer_plan);
            if (!context.quiet()) print_warnings(path, spec, layer_plan);
        }

        const Scorer scorer(model, scoring.sweep_settings(settings));
        scoring.check_answers(scorer, plans[0], workload);
        const InterruptGuard interrupt;
        ProgressLine line(std::filesystem::path(path).filename().string(), context.quiet());
        const PlanScores scores = scorer.score(plans, workload, {}, [&](double fraction) {
            line.show(fraction);
            return !interrupt.interrupted();
        });
        if (!scores.complete) return false;
        for (size_t p = 0; p < plans.size(); ++p) {
            Row row{.model = path,
                    .spec = named[p].first,
                    .plan = plans[p],
                    .cost = plan_cost(plans[p], model->shape(), settings.cache),
                    .identity_cost = plan_cost(plans[0], model->shape(), settings.cache),
                    .scores = {},
                    .differences = {}};
            for (size_t m = 0; m < measures.size(); ++m) {
                row.scores.push_back(mean_of(scores.by_plan[p][m]));
                row.differences.push_back(
                    paired_difference(scores.by_plan[p][m], scores.by_plan[0][m], {.seed = seed}));
            }
            if (!scores.answers.empty()) {
                answers += answer_lines(row, workload, scores.answers[p]);
            }
            rows.push_back(std::move(row));
        }
        return true;
    }

    static std::string as_text(const std::vector<Row>& rows, const std::vector<Measure>& measures) {
        std::string text;
        std::string model;
        for (const Row& row : rows) {
            if (row.model != model) {
                model = row.model;
                text += fmt::format("{}\n", model);
            }
            text += fmt::format(
                "  {}: compute {:.3f}, weights read {:.3f}, cache {:.3f} of the "
                "identity's\n",
                row.spec.empty() ? "identity" : row.spec,
                cost_ratio(row.cost.flops, row.identity_cost.flops),
                cost_ratio(row.cost.weight_read_bytes, row.identity_cost.weight_read_bytes),
                cost_ratio(row.cost.cache_bytes(), row.identity_cost.cache_bytes()));
            for (size_t m = 0; m < measures.size(); ++m) {
                const Score shown = shown_score(measures[m], row.scores[m]);
                text += fmt::format("    {:<24} {:>10} +/- {}", shown_name(measures[m]),
                                    decimals(shown.value), decimals(shown.error));
                const PairedDifference& d = row.differences[m];
                if (!row.spec.empty()) {
                    text += fmt::format("   {}{} p {:.2g}", is_nll(measures[m]) ? "nll " : "",
                                        difference_text(d.mean, d.low, d.high), d.p);
                }
                text += '\n';
            }
        }
        return text;
    }

    ordered_json as_json(const std::vector<Row>& rows, const std::vector<Measure>& measures) const {
        ordered_json list = ordered_json::array();
        for (const Row& row : rows) {
            ordered_json scores = ordered_json::object();
            for (size_t m = 0; m < measures.size(); ++m) {
                const PairedDifference& d = row.differences[m];
                ordered_json entry{{"value", row.scores[m].value},
                                   {"error", row.scores[m].error},
                                   {"n_items", d.n_items}};
                if (is_nll(measures[m])) {
                    const Score ppl = perplexity_of(row.scores[m]);
                    entry["perplexity"] = ppl.value;
                    entry["perplexity_error"] = ppl.error;
                }
                entry["difference"] = {{"value", d.mean},
                                       {"error", d.error},
                                       {"low", d.low},
                                       {"high", d.high},
                                       {"p", d.p}};
                scores[measures[m].name] = std::move(entry);
            }
            list.push_back(
                {{"model", row.model},
                 {"spec", row.spec},
                 {"plan", row.plan.canonical()},
                 {"hash", row.plan.hash()},
                 {"n_pass", row.plan.size()},
                 {"ratios",
                  {{"flops", cost_ratio(row.cost.flops, row.identity_cost.flops)},
                   {"weight_read",
                    cost_ratio(row.cost.weight_read_bytes, row.identity_cost.weight_read_bytes)},
                   {"cache", cost_ratio(row.cost.cache_bytes(), row.identity_cost.cache_bytes())}}},
                 {"scores", std::move(scores)}});
        }
        return {{"n_ctx", scoring.n_ctx()}, {"bootstrap_seed", seed}, {"results", list}};
    }
};

}  // namespace

void add_eval(CLI::App& app) {
    auto command = std::make_shared<EvalCommand>();
    CLI::App* const sub = app.add_subcommand(
        "eval", "Score several plans of one or several models on texts and probes, in one sitting");
    sub->add_option("MODEL", command->models, "Model files (GGUF)");
    sub->add_option("-m,--model", command->named_models,
                    "A model file (GGUF), before those of the arguments (repeatable)")
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    sub->add_option("--spec", command->specs,
                    "A plan to score, in one line, as \"26,34\" or \"drop:3,7\" (repeatable)")
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    command->scoring.add(*sub);
    command->scoring.add_measures(*sub);
    sub->add_option("--seed", command->seed, "Of the bootstrap intervals")->capture_default_str();
    sub->add_option("--answers", command->answers_path,
                    "With --generate: write what the plans answered, a line of JSON each")
        ->needs(sub->get_option("--generate"));
    sub->add_flag("--json", command->json, "One JSON object instead of a table");
    command->plan.add(*sub);
    command->context.add(*sub, false);
    sub->footer(
        "The identity plan is always scored; differences to it are paired by item.\n"
        "Examples:\n"
        "  pleat eval model.gguf --spec \"26,34\" --spec \"drop:3,7\" --text text.txt\n"
        "  pleat eval q4.gguf q8.gguf --spec \"26,34\" --probes arithmetic.jsonl --json");
    sub->callback([command] { command->run(); });
}

}  // namespace pleat::cli
