#include "lab/calibrate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "arch/registry.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/lab_options.h"
#include "cli/numbers.h"
#include "cli/options.h"
#include "cli/trial_options.h"
#include "lab/decode_speed.h"
#include "lab/fingerprint.h"
#include "lab/json.h"
#include "lab/profile.h"
#include "lab/similarity.h"
#include "lab/trials.h"

namespace pleat::cli {
namespace {

using nlohmann::ordered_json;

constexpr double default_max_loss = 0.01;
/// Of the short measurements of speed.
constexpr size_t most_speeds = 12;
constexpr uint32_t speed_tokens = 32;
constexpr uint32_t speed_rounds = 3;

std::string_view end_text(CalibrationEnd end) {
    switch (end) {
        case CalibrationEnd::reached:
            return "the cache is as small as --keep-kv asks for";
        case CalibrationEnd::limit:
            return "every further drop goes over the limit";
        case CalibrationEnd::probes:
            return "every further drop within the limit makes answers of the probes worse";
        case CalibrationEnd::nothing_left:
            return "no attention is left that may be dropped and would save something";
        case CalibrationEnd::interrupted:
            return "interrupted";
    }
    return "";
}

struct CalibrateCommand {
    const CLI::App* app = nullptr;
    ModelArgument model;
    ContextOptions context;
    ScoringOptions scoring;
    std::string max_loss;
    std::optional<double> max_kl;
    std::string keep_kv;
    RetrievalOptions retrieval;
    TrialOptions trial;
    bool no_speed = false;
    bool json = false;

    /// What a run is about, and what it found.
    struct Run {
        std::shared_ptr<Model> opened;
        ContextSettings settings;
        Workload workload;
        std::vector<DataSource> data;
        DropLimits limits;
        Calibration calibration;
        std::vector<CurvePoint> curve;
        std::vector<LayerSimilarity> similarity;
        std::vector<std::string> broken_limits;
        Profile profile;

        const ModelShape& shape() const { return opened->shape(); }
    };

    void run() const {
        const DropLimits limits = drop_limits();
        if (scoring.texts().empty()) {
            fail("calibrate needs a text to measure the loss on: --text FILE");
        }
        for (const std::string& warning : context.warnings()) {
            fmt::print(stderr, "warning: {}\n", warning);
        }
        ResultFiles files(scoring.inputs(model.model()));
        trial.check_files(files);
        load_backends_from_environment();
        Run r;
        r.limits = limits;
        r.opened = open_model(model.model(), context.model_options());
        r.settings = context.settings(r.shape());
        const Tokenizer tokenizer = Tokenizer::open(model.model());
        r.workload = scoring.workload(tokenizer);
        scoring.warn_of_length(r.workload, r.shape());
        r.data = scoring.sources(r.workload);
        retrieval.add_questions(r.workload, r.data, tokenizer, r.shape(), trial.seed());
        const SweepSettings sweep = scoring.sweep_settings(r.settings);
        const Fingerprint fingerprint = fingerprint_of(r.opened->file(), r.shape());
        const auto named = trial.settings(scoring, context, r.settings.cache);
        std::optional<Journal> journal = trial.open_journal({.command = "calibrate",
                                                             .model = fingerprint,
                                                             .measures = r.workload.measures(),
                                                             .data = r.data,
                                                             .settings = named});
        const Scorer scorer(r.opened, sweep);
        scoring.check_answers(scorer, LayerPlan::resolve({}, r.shape()), r.workload);
        trial.warn_without_journal(context.quiet());
        Trials trials(scorer, r.workload,
                      split_workload(r.workload, trial.validation(), trial.seed()),
                      journal ? &*journal : nullptr);
        if (!measure(r, trials, sweep)) end_interrupted(journal);
        r.broken_limits = limits_broken(r, trials);
        for (const std::string& broken : r.broken_limits) {
            fmt::print(stderr, "warning: {}\n", broken);
        }
        fill_profile(r, trials, fingerprint);
        if (!trial.profile().empty()) write_profile(trial.profile(), r.profile);
        if (json) {
            fmt::print("{}\n", dump_json(as_json(r), 2));
        } else {
            fmt::print("{}", as_text(r));
        }
    }

    DropLimits drop_limits() const {
        DropLimits limits;
        if (!max_loss.empty()) limits.max_loss = parse_ratio(max_loss, "--max-loss");
        if (limits.max_loss && *limits.max_loss >= 1 && !max_loss.ends_with('%')) {
            fail("--max-loss {}: percent or times? Write 1% or 0.01, and 100% for all", max_loss);
        }
        if (max_kl && !(std::isfinite(*max_kl) && *max_kl >= 0)) {
            fail("--kl {}: expected a number of nats per token, 0 or more", *max_kl);
        }
        limits.max_kl = max_kl;
        if (!keep_kv.empty()) {
            limits.keep_kv = parse_ratio(keep_kv, "--keep-kv");
            if (*limits.keep_kv >= 1) {
                fail("--keep-kv {}: expected less than 100%, which is what the model has", keep_kv);
            }
        }
        if (!limits.max_loss && !limits.max_kl && !limits.keep_kv) {
            limits.max_loss = default_max_loss;
        }
        return limits;
    }

    /// All that takes time; false when interrupted.
    bool measure(Run& r, Trials& trials, const SweepSettings& sweep) const {
        const InterruptGuard interrupt;
        const auto progress = [&](ProgressLine& line) {
            return [&](double fraction) {
                line.show(fraction);
                return !interrupt.interrupted();
            };
        };
        int round = 0;
        const auto score = [&](const std::vector<LayerPlan>& plans) {
            ProgressLine line(fmt::format("round {}: {} plans", ++round, plans.size() - 1),
                              context.quiet());
            return trials.score(plans, TrialPart::selection, progress(line));
        };
        r.calibration = calibrate(r.shape(), r.settings.cache, trials.measures(), r.limits, score);
        if (r.calibration.end == CalibrationEnd::interrupted) return false;
        r.curve = calibration_curve(r.calibration, r.shape(), r.settings.cache, r.limits);
        if (trials.has_validation()) {
            ProgressLine line("validation", context.quiet());
            std::vector<LayerPlan> plans{drop_plan(r.shape(), {})};
            if (!r.curve.empty()) plans.push_back(drop_plan(r.shape(), r.calibration.dropped));
            if (!trials.score(plans, TrialPart::validation, progress(line))) return false;
        }
        if (has_separate_sublayers(*r.opened)) {
            ProgressLine line("similarity", context.quiet());
            std::vector<std::vector<int32_t>> sequences;
            for (const ScoredSequence& sequence : r.workload.sequences()) {
                if (r.workload.is_text(sequence.source)) sequences.push_back(sequence.item.tokens);
            }
            r.similarity = layer_similarity(r.opened, r.settings, sweep.rows_per_batch, sequences,
                                            progress(line));
            if (r.similarity.empty()) return false;
        }
        return no_speed || measure_speed(r, interrupt);
    }

    /// Of the identity plan and of points along the curve, the last one among them; what others are
    /// predicted to run at follows from the first.
    static bool measure_speed(Run& r, const InterruptGuard& interrupt) {
        std::vector<LayerPlan> plans{drop_plan(r.shape(), {})};
        const size_t step = (r.curve.size() + most_speeds - 1) / most_speeds;
        std::vector<size_t> points;
        for (size_t i = r.curve.size(); i > 0; i -= std::min(i, step)) points.push_back(i - 1);
        for (const size_t i : points) plans.push_back(drop_plan(r.shape(), r.curve[i].dropped));
        const auto speeds = decode_speeds(r.opened, plans, r.settings, speed_tokens, speed_rounds,
                                          [&] { return !interrupt.interrupted(); });
        if (speeds.empty()) return false;
        const PlanCost identity = plan_cost(plans.front(), r.shape(), r.settings.cache);
        for (CurvePoint& point : r.curve) {
            const LayerPlan plan = drop_plan(r.shape(), point.dropped);
            const PlanCost cost = plan_cost(plan, r.shape(), r.settings.cache);
            point.predicted_tokens_per_s = speeds.front() / predicted_decode_ratio(cost, identity);
        }
        for (size_t i = 0; i < points.size(); ++i) {
            r.curve[points[i]].measured_tokens_per_s = speeds[i + 1];
        }
        r.profile.settings.emplace_back("identity_tokens_per_s",
                                        fmt::format("{:.2f}", speeds.front()));
        return true;
    }

    static double kv_kept(const Run& r, std::span<const int32_t> dropped) {
        const auto bytes = [&](std::span<const int32_t> layers) {
            return plan_cost(drop_plan(r.shape(), layers), r.shape(), r.settings.cache)
                .kv_bytes_per_token();
        };
        const uint64_t all = bytes({});
        return all == 0 ? 1.0 : static_cast<double>(bytes(dropped)) / static_cast<double>(all);
    }

    static std::vector<std::string> limits_broken(const Run& r, const Trials& trials) {
        const LayerPlan plan = drop_plan(r.shape(), r.calibration.dropped);
        const LayerPlan identity = drop_plan(r.shape(), {});
        const auto loss_on = [&](TrialPart part) -> std::optional<PlanLoss> {
            const PlanItems* const own = trials.find(plan, part);
            const PlanItems* const base = trials.find(identity, part);
            if (r.curve.empty() || own == nullptr || base == nullptr) return std::nullopt;
            return plan_loss(trials.measures(), *own, *base, r.limits.alpha);
        };
        return broken_limits(r.limits, kv_kept(r, r.calibration.dropped),
                             loss_on(TrialPart::selection), loss_on(TrialPart::validation));
    }

    void fill_profile(Run& r, const Trials& trials, const Fingerprint& fingerprint) const {
        Profile& p = r.profile;
        p.plan = drop_spec(r.calibration.dropped);
        p.model = fingerprint;
        p.measures = trials.profile_measures(drop_plan(r.shape(), r.calibration.dropped));
        p.data = r.data;
        p.n_plans_tried = trials.n_plans();
        p.curve = r.curve;
        p.similarity = r.similarity;
        auto settings = trial.settings(scoring, context, r.settings.cache);
        if (r.limits.max_loss)
            settings.emplace_back("max_loss", fmt::to_string(*r.limits.max_loss));
        if (r.limits.max_kl) settings.emplace_back("max_kl", fmt::to_string(*r.limits.max_kl));
        if (r.limits.keep_kv) settings.emplace_back("keep_kv", fmt::to_string(*r.limits.keep_kv));
        settings.emplace_back("kv_bytes_for_n_ctx", fmt::to_string(r.settings.cache.n_ctx));
        p.settings.insert(p.settings.begin(), settings.begin(), settings.end());
        p.provenance = provenance_here(command_line(*app), r.settings.n_threads_batch);
        p.notes.push_back(fmt::format("stopped: {}", end_text(r.calibration.end)));
        p.notes.insert(p.notes.end(), r.broken_limits.begin(), r.broken_limits.end());
        for (const ProfileMeasure& it : p.measures) {
            const auto& identity = it.identity_selection;
            if (!it.measure.name.starts_with("exact:") || !identity || identity->value >= 0.1) {
                continue;
            }
            p.notes.push_back(
                fmt::format("{}: the identity plan itself answers hardly any, so these probes say "
                            "little about what drops cost",
                            it.measure.name));
        }
    }

    static std::string loss_text(const PlanLoss& loss) {
        return fmt::format("{:+8.3f} % +/- {:<7.3f} {:.5f}", loss.perplexity * 100,
                           loss.perplexity_error * 100, loss.kl);
    }

    std::string as_text(const Run& r) const {
        const CacheSettings& cache = r.settings.cache;
        std::string text = fmt::format("{:<5} {:<10} {:<21} {:<8} {:<16} {}\n", "drops", "layers",
                                       "perplexity rise", "KL", "KV bytes a token", "tokens/s");
        size_t n = 0;
        for (const CalibrationRound& round : r.calibration.rounds) {
            if (!round.chosen) continue;
            const DropCandidate& it = round.candidates[*round.chosen];
            const CurvePoint& point = r.curve[n++];
            const uint64_t own = plan_cost(drop_plan(r.shape(), point.dropped), r.shape(), cache)
                                     .kv_bytes_per_token();
            std::string speed;
            if (point.predicted_tokens_per_s) {
                speed = fmt::format("{:.1f} predicted", *point.predicted_tokens_per_s);
            }
            if (point.measured_tokens_per_s) {
                speed += fmt::format(", {:.1f} measured", *point.measured_tokens_per_s);
            }
            text += fmt::format("{:<5} {:<10} {:<30} {:>7} {:>6.0f} %  {}\n", point.dropped.size(),
                                fmt::format("{}", fmt::join(it.group, ",")), loss_text(it.loss),
                                own, 100 * kv_kept(r, point.dropped), speed);
        }
        text += fmt::format("stopped after {} plans: {}\n", r.profile.n_plans_tried,
                            end_text(r.calibration.end));
        text += as_text_measures(r);
        for (const std::string& note : r.profile.notes) {
            if (note.starts_with("exact:")) text += fmt::format("note: {}\n", note);
        }
        text += as_text_layers(r);
        text += r.profile.plan.empty()
                    ? "plan: the identity, nothing was dropped\n"
                    : fmt::format("plan: --drop-attention \"{}\"{}\n", r.profile.plan.substr(5),
                                  trial.profile().empty() ? "" : ", in " + trial.profile());
        return text;
    }

    static std::string as_text_measures(const Run& r) {
        std::string text;
        const auto line = [](const std::optional<Score>& plan, const std::optional<Score>& identity,
                             const std::optional<Difference>& d) {
            return fmt::format("{}, identity {}, difference {}", decimals(plan->value),
                               decimals(identity->value),
                               difference_text(d->value, d->low, d->high));
        };
        bool explain = false;
        for (const ProfileMeasure& it : r.profile.measures) {
            text += fmt::format("{}\n", it.measure.name);
            if (it.selection) {
                text +=
                    fmt::format("  selection   {}{}\n",
                                line(it.selection, it.identity_selection, it.selection_difference),
                                !it.survives   ? ""
                                : *it.survives ? ", survives"
                                               : ", does not survive");
                explain = explain || it.survives;
            }
            if (it.validation) {
                text += fmt::format(
                    "  validation  {}\n",
                    line(it.validation, it.identity_validation, it.validation_difference));
            }
        }
        if (explain) {
            text += fmt::format(
                "survives: the difference, for better or worse, stays significant after Holm's "
                "correction over all {} plans\n",
                r.profile.n_plans_tried);
        }
        return text;
    }

    /// What a single drop of each layer lost in the first round, beside the cheap score.
    static std::string as_text_layers(const Run& r) {
        std::string text = fmt::format("{:<6} {:<20} {:<22} {:<20} {}\n", "layer", "role",
                                       "similarity attention", "similarity FFN", "dropped alone");
        for (int32_t layer = 0; layer < r.shape().n_layer; ++layer) {
            const auto i = static_cast<size_t>(layer);
            std::string attention = "-";
            std::string ffn = "-";
            if (!r.similarity.empty()) {
                attention = fmt::format("{:.4f}", r.similarity[i].attention);
                ffn = fmt::format("{:.4f}", r.similarity[i].ffn);
            }
            std::string alone = "-";
            if (!r.calibration.rounds.empty()) {
                for (const DropCandidate& it : r.calibration.rounds.front().candidates) {
                    if (it.group.front() != layer) continue;
                    alone = fmt::format("{:+.3f} %", it.loss.perplexity * 100);
                    if (it.group.size() > 1) alone += " with its readers";
                    for (const std::string& name : it.loss.worse) alone += ", worse " + name;
                }
            }
            text += fmt::format("{:<6} {:<20} {:<22} {:<20} {}\n", layer,
                                role_name(r.shape().layers[i].role), attention, ffn, alone);
        }
        return text;
    }

    static ordered_json as_json(const Run& r) {
        ordered_json rounds = ordered_json::array();
        for (const CalibrationRound& round : r.calibration.rounds) {
            ordered_json candidates = ordered_json::array();
            for (const DropCandidate& it : round.candidates) {
                candidates.push_back({{"layers", it.group},
                                      {"perplexity_rise", it.loss.perplexity},
                                      {"perplexity_rise_error", it.loss.perplexity_error},
                                      {"kl", it.loss.kl},
                                      {"worse", it.loss.worse}});
            }
            ordered_json entry = {{"candidates", std::move(candidates)}, {"chosen", nullptr}};
            if (round.chosen) entry["chosen"] = *round.chosen;
            rounds.push_back(std::move(entry));
        }
        return {{"stopped", end_text(r.calibration.end)},
                {"rounds", std::move(rounds)},
                {"profile", ordered_json::parse(profile_json(r.profile))}};
    }
};

}  // namespace

void add_calibrate(CLI::App& app) {
    auto command = std::make_shared<CalibrateCommand>();
    CLI::App* const sub = app.add_subcommand(
        "calibrate", "Drop attention layer by layer, the least missed first, up to a limit");
    command->app = sub;
    command->model.add(*sub);
    command->scoring.add(*sub);
    const std::string group = "Calibration";
    sub->add_option(
           "--max-loss", command->max_loss,
           "The perplexity of every text may rise by at most so much, as 1% or 0.01 (1% when no "
           "limit is given)")
        ->type_name("PERCENT")
        ->group(group);
    sub->add_option("--kl", command->max_kl,
                    "The mean KL divergence from the identity plan may be at most so many nats per "
                    "token, in every text")
        ->group(group);
    sub->add_option("--keep-kv", command->keep_kv,
                    "Drop until the K/V bytes per token are at most this share of the identity's, "
                    "as 60% or 0.6; only drops that free cache are tried")
        ->type_name("PERCENT")
        ->group(group);
    command->retrieval.add(*sub, group);
    command->trial.add(*sub, group);
    sub->add_flag("--no-speed", command->no_speed, "Do not measure the speed of decoding")
        ->group(group);
    sub->add_flag("--json", command->json, "One JSON object instead of a table")->group(group);
    command->context.add(*sub, false);
    sub->footer(
        "Each round scores the model without one more attention, for every layer that\n"
        "may lose it, and drops the one that loses least. Recurrent layers keep theirs,\n"
        "a hybrid keeps one attention layer, and with the owner of shared K/V go those\n"
        "who read it. A drop counts only when it is within the limits on the selection\n"
        "part of the text and no kind of probe is answered significantly worse than by\n"
        "the identity plan: neither the likelihood of the answers nor the share of\n"
        "exact ones (paired by question, Student's t, two-sided p <= 0.05). What does not\n"
        "hold on the validation part, or was not reached, is a warning and a note of the\n"
        "profile, which has the last plan within the limits.\n"
        "Examples:\n"
        "  pleat calibrate model.gguf --text text.txt --max-loss 1% --profile p.json\n"
        "  pleat calibrate model.gguf --text text.txt --keep-kv 60% --no-retrieval\n"
        "  pleat calibrate model.gguf --text text.txt --kl 0.02 --probes needles.jsonl\n"
        "  pleat run model.gguf -p \"Once\" --plan p.json");
    sub->callback([command] { command->run(); });
}

}  // namespace pleat::cli
