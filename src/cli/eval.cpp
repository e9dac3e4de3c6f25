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
#include "cli/options.h"
#include "lab/answers.h"
#include "lab/probes.h"
#include "lab/scorer.h"
#include "lab/statistics.h"
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
    std::vector<std::pair<std::string, ProbeSummary>> answers = {};  ///< by kind, when generated
};

/// Probes of one kind with what a plan answered.
struct Answers {
    std::string kind;
    std::vector<Probe> probes;
};

bool is_nll(const Measure& measure) { return measure.name.starts_with("nll"); }

/// What people read: perplexity in place of its logarithm.
std::string shown_name(const Measure& measure) {
    return is_nll(measure) ? "ppl" + measure.name.substr(3) : measure.name;
}

Score shown_score(const Measure& measure, const Score& score) {
    return is_nll(measure) ? perplexity_of(score) : score;
}

struct EvalCommand {
    std::vector<std::string> models;
    std::vector<std::string> specs;
    PlanOptions plan;
    ContextOptions context;
    ScoringOptions scoring;
    uint64_t seed = 1;
    bool generate = false;
    double min_parse = 0.5;
    bool json = false;

    void run() const {
        if (models.empty()) fail("no model given: name one or more GGUF files");
        for (const std::string& warning : context.warnings()) {
            fmt::print(stderr, "warning: {}\n", warning);
        }
        load_backends_from_environment();
        std::vector<Row> rows;
        std::vector<Measure> measures;
        for (const std::string& path : models) {
            if (!score_model(path, rows, measures)) {
                fmt::print(stderr, "interrupted\n");
                throw CLI::RuntimeError(interrupted_status);
            }
        }
        if (json) {
            fmt::print("{}\n", as_json(rows, measures).dump(2));
        } else {
            fmt::print("{}", as_text(rows, measures));
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
                     std::vector<Measure>& measures) const {
        const auto model = open_model(path, context.model_options());
        const Tokenizer tokenizer = Tokenizer::open(path);
        const Workload workload =
            generate ? scoring.text_workload(tokenizer) : scoring.workload(tokenizer);
        const std::vector<Answers> asked = generate ? questions() : std::vector<Answers>{};
        measures = workload.measures();
        for (const Answers& kind : asked) measures.push_back({"probe:" + kind.kind, true});
        const ContextSettings settings = context.settings(model->shape());
        const auto named = plans_of(*model);
        std::vector<LayerPlan> plans;
        for (const auto& [spec, layer_plan] : named) plans.push_back(layer_plan);

        const InterruptGuard interrupt;
        PlanScores scores{.by_plan = std::vector<std::vector<ItemScores>>(plans.size())};
        if (!workload.sequences().empty()) {
            ProgressLine line(std::filesystem::path(path).filename().string(), context.quiet());
            const Scorer scorer(model, scoring.sweep_settings(settings));
            scores = scorer.score(plans, workload, {}, [&](double fraction) {
                line.show(fraction);
                return !interrupt.interrupted();
            });
            if (!scores.complete) return false;
        }
        std::vector<std::vector<std::pair<std::string, ProbeSummary>>> answers(plans.size());
        const AnswerSettings answering{
            .context = settings, .memory_budget = scoring.sweep_settings(settings).memory_budget};
        for (const Answers& kind : asked) {
            check_parses(model, plans[0], tokenizer, kind, answering);
            ProgressLine line("answers to " + kind.kind, context.quiet());
            const ProbeAnswers found = answer_probes(model, plans, tokenizer, kind.probes,
                                                     answering, [&](double fraction) {
                                                         line.show(fraction);
                                                         return !interrupt.interrupted();
                                                     });
            if (!found.complete) return false;
            for (size_t p = 0; p < plans.size(); ++p) {
                scores.by_plan[p].push_back(item_scores(found.by_plan[p]));
                answers[p].emplace_back(kind.kind, summarize(found.by_plan[p]));
            }
        }
        for (size_t p = 0; p < plans.size(); ++p) {
            Row row{.model = path,
                    .spec = named[p].first,
                    .plan = plans[p],
                    .cost = plan_cost(plans[p], model->shape(), settings.cache),
                    .identity_cost = plan_cost(plans[0], model->shape(), settings.cache),
                    .scores = {},
                    .differences = {},
                    .answers = answers[p]};
            for (size_t m = 0; m < measures.size(); ++m) {
                row.scores.push_back(mean_of(scores.by_plan[p][m]));
                row.differences.push_back(
                    paired_difference(scores.by_plan[p][m], scores.by_plan[0][m], {.seed = seed}));
            }
            rows.push_back(std::move(row));
        }
        return true;
    }

    std::vector<Answers> questions() const {
        if (scoring.probes().empty()) fail("--generate needs probes to answer: --probes FILE");
        std::vector<Answers> kinds;
        for (const Probe& probe : scoring.read_probes()) {
            auto kind = std::ranges::find(kinds, probe.kind, &Answers::kind);
            if (kind == kinds.end()) kind = kinds.insert(kinds.end(), {probe.kind, {}});
            kind->probes.push_back(probe);
        }
        return kinds;
    }

    /// A ranking of answers that nobody can read would rank noise: seen on a few before the rest.
    void check_parses(const std::shared_ptr<Model>& model, const LayerPlan& identity,
                      const Tokenizer& tokenizer, const Answers& kind,
                      const AnswerSettings& answering) const {
        constexpr size_t n_tried = 8;
        const auto few = std::span(kind.probes).first(std::min(n_tried, kind.probes.size()));
        const ProbeAnswers found =
            answer_probes(model, std::span(&identity, 1), tokenizer, few, answering);
        const ProbeSummary seen = summarize(found.by_plan.front());
        if (seen.parsed >= min_parse) return;
        fail(
            "of {} answers to probes of kind {} the identity plan gives only {:.0f} % in a form "
            "that can be read, {:.0f} % are wanted (--min-parse)",
            few.size(), kind.kind, 100.0 * seen.parsed, 100.0 * min_parse);
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
                text += fmt::format("    {:<24} {:10.4f} +/- {:.4f}", shown_name(measures[m]),
                                    shown.value, shown.error);
                const PairedDifference& d = row.differences[m];
                if (!row.spec.empty()) {
                    text +=
                        fmt::format("   {}{:+.4f} [{:+.4f}, {:+.4f}] p {:.2g}",
                                    is_nll(measures[m]) ? "nll " : "", d.mean, d.low, d.high, d.p);
                }
                text += '\n';
            }
            for (const auto& [kind, a] : row.answers) {
                text += fmt::format(
                    "    {:<24} exact {:.3f}, parsed {:.3f}, length right {:.3f}, "
                    "cut {:.3f} of {}\n",
                    "answers:" + kind, a.exact, a.parsed, a.length_ok, a.cut, a.n);
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
            for (const auto& [kind, a] : row.answers) {
                ordered_json& entry = scores["probe:" + kind];
                entry["exact"] = a.exact;
                entry["parsed"] = a.parsed;
                entry["length_ok"] = a.length_ok;
                entry["cut"] = a.cut;
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
    sub->add_option("MODEL", command->models, "Model files (GGUF)")->required();
    sub->add_option("--spec", command->specs,
                    "A plan to score, in one line, as \"26,34\" or \"drop:3,7\" (repeatable)")
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    command->scoring.add(*sub);
    sub->add_option("--seed", command->seed, "Of the bootstrap intervals")->capture_default_str();
    sub->add_flag("--generate", command->generate,
                  "Let the plans write the answers to probes, instead of asking whether the right "
                  "ones are the likeliest; RYS probes need it");
    sub->add_option("--min-parse", command->min_parse,
                    "With --generate: refuse when fewer of the identity plan's answers can be read")
        ->check(CLI::Range(0.0, 1.0))
        ->capture_default_str();
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
