#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "arch/registry.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/load.h"
#include "cli/numbers.h"
#include "cli/options.h"
#include "engine/logits_hash.h"
#include "plan/cost.h"

namespace pleat::cli {
namespace {

using nlohmann::ordered_json;

struct Spread {
    double mean = 0.0;
    double deviation = 0.0;  ///< of the sample
};

Spread spread_of(const std::vector<double>& values) {
    const auto n = static_cast<double>(values.size());
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
    double squares = 0.0;
    for (const double value : values) squares += (value - mean) * (value - mean);
    return {.mean = mean, .deviation = values.size() > 1 ? std::sqrt(squares / (n - 1.0)) : 0.0};
}

/// One line of the result: a plan under a test ("pp512", "tg128").
struct Row {
    std::string spec;
    std::string canonical;
    std::string hash;
    std::string test;
    uint32_t n_tokens = 0;
    std::vector<double> samples;  ///< tokens per second
    uint64_t read_bytes = 0;      ///< weights read per graph run
    uint32_t n_runs = 0;          ///< graph runs of one repetition
    double predicted = 1.0;       ///< decode time over the identity's, by the cost model
    std::string logits_hash;

    Spread speed() const { return spread_of(samples); }
    double bytes_per_second() const {
        return speed().mean / n_tokens * n_runs * static_cast<double>(read_bytes);
    }
};

struct Candidate {
    std::string spec;
    std::unique_ptr<Context> context;
    double predicted = 1.0;
    uint64_t read_bytes = 0;
};

struct BenchCommand {
    ModelArgument model;
    PlanOptions plan;
    ContextOptions context;
    std::vector<std::string> specs;
    std::vector<uint32_t> n_prompt{512};
    std::vector<uint32_t> n_gen{128};
    uint32_t repetitions = 5;
    uint32_t depth = 0;
    bool no_warmup = false;
    std::string format = "md";

    void run() const {
        for (const std::string& warning : context.warnings()) {
            fmt::print(stderr, "warning: {}\n", warning);
        }
        load_backends_from_environment();
        const auto file = open_model(model.model(), context.model_options());
        const ModelShape& shape = file->shape();
        ContextSettings settings = context.settings(shape);
        const auto greatest = [](const std::vector<uint32_t>& values) {
            return values.empty() ? 0U : *std::ranges::max_element(values);
        };
        settings.cache.n_ctx = depth + std::max(greatest(n_prompt), greatest(n_gen)) + 1;
        std::vector<Candidate> candidates = make_candidates(file, settings);
        std::vector<Row> rows;
        for (const bool prompt : {true, false}) {
            for (const uint32_t n : prompt ? n_prompt : n_gen) {
                if (n == 0) continue;
                for (Row& row : measure(candidates, n, prompt)) rows.push_back(std::move(row));
            }
        }
        print(*file, settings, rows);
    }

    std::vector<Candidate> make_candidates(const std::shared_ptr<Model>& file,
                                           const ContextSettings& settings) const {
        const ModelShape& shape = file->shape();
        const PlanCost identity = plan_cost(LayerPlan::resolve({}, shape), shape, settings.cache);
        std::vector<Candidate> candidates;
        const auto add = [&](std::string spec, LayerPlan layer_plan) {
            const PlanCost cost = plan_cost(layer_plan, shape, settings.cache);
            if (!context.quiet()) {
                for (const std::string& warning : layer_plan.warnings()) {
                    fmt::print(stderr, "warning: {}\n", warning);
                }
            }
            candidates.push_back(
                {.spec = std::move(spec),
                 .context = std::make_unique<Context>(file, std::move(layer_plan), settings,
                                                      progress_bar(context.quiet())),
                 .predicted = predicted_decode_ratio(cost, identity),
                 .read_bytes = cost.weight_read_bytes});
        };
        if (specs.empty()) {
            LayerPlan layer_plan = plan.resolve(*file);
            std::string name = layer_plan.is_identity() ? "" : layer_plan.canonical();
            add(std::move(name), std::move(layer_plan));
        }
        for (const std::string& spec : specs) add(spec, plan.resolve_spec(spec, "--spec", *file));
        return candidates;
    }

    /// All plans take turns within each repetition, so that a drift of the machine's speed meets
    /// them alike. The first turn warms up and is not counted.
    std::vector<Row> measure(std::vector<Candidate>& candidates, uint32_t n, bool prompt) const {
        std::vector<Row> rows;
        for (const Candidate& candidate : candidates) {
            const LayerPlan& layer_plan = candidate.context->plan();
            const uint32_t n_ubatch = candidate.context->settings().cache.n_ubatch;
            rows.push_back({.spec = candidate.spec,
                            .canonical = layer_plan.canonical(),
                            .hash = layer_plan.hash(),
                            .test = fmt::format("{}{}{}", prompt ? "pp" : "tg", n,
                                                depth > 0 ? fmt::format(" @ d{}", depth) : ""),
                            .n_tokens = n,
                            .samples = {},
                            .read_bytes = candidate.read_bytes,
                            .n_runs = prompt ? (n + n_ubatch - 1) / n_ubatch : n,
                            .predicted = candidate.predicted,
                            .logits_hash = {}});
        }
        for (uint32_t repetition = no_warmup ? 1 : 0; repetition <= repetitions; ++repetition) {
            for (size_t i = 0; i < candidates.size(); ++i) {
                const double seconds = time_once(*candidates[i].context, n, prompt);
                if (repetition > 0) rows[i].samples.push_back(n / seconds);
                rows[i].logits_hash = logits_hash(candidates[i].context->logits(0));
            }
        }
        return rows;
    }

    double time_once(Context& c, uint32_t n, bool prompt) const {
        std::mt19937 random(n);
        const auto token = [&] { return static_cast<int32_t>(random() % c.n_vocab()); };
        const auto tokens = [&](uint32_t count) {
            std::vector<int32_t> result(count);
            std::ranges::generate(result, token);
            return result;
        };
        const auto decode = [&](const std::vector<int32_t>& ids) {
            if (c.decode(0, ids) != DecodeStatus::ok) fail("{} tokens do not fit", ids.size());
        };
        c.clear();
        if (depth > 0) decode(tokens(depth));
        const std::vector<int32_t> ids = tokens(n);
        const auto start = std::chrono::steady_clock::now();
        if (prompt) {
            decode(ids);
        } else {
            for (const int32_t id : ids) decode({id});
        }
        const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
        return elapsed.count();
    }

    void print(const Model& m, const ContextSettings& settings,
               const std::vector<Row>& rows) const {
        const uint64_t bytes = m.file().file_bytes();
        if (format == "md") {
            fmt::print(
                "| model | size | threads | plan | test | t/s | GB/s read | predicted decode "
                "time | logits |\n| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | --- |\n");
            for (const Row& row : rows) {
                const Spread speed = row.speed();
                fmt::print(
                    "| {} {} | {} | {} | {} | {} | {:.2f} ± {:.2f} | {:.2f} | {:.3f} x | {} |\n",
                    m.shape().architecture, m.shape().name, format_bytes(bytes), settings.n_threads,
                    row.spec.empty() ? "identity" : row.spec, row.test, speed.mean, speed.deviation,
                    row.bytes_per_second() / 1e9, row.predicted, row.logits_hash);
            }
        } else if (format == "csv") {
            fmt::print(
                "model,bytes,threads,spec,plan,hash,test,avg_ts,stddev_ts,read_gb_s,"
                "predicted_decode_ratio,logits_hash\n");
            for (const Row& row : rows) {
                const Spread speed = row.speed();
                fmt::print("{},{},{},\"{}\",\"{}\",{},{},{:.6f},{:.6f},{:.6f},{:.6f},{}\n",
                           csv_text(m.file().path()), bytes, settings.n_threads, row.spec,
                           row.canonical, row.hash, row.test, speed.mean, speed.deviation,
                           row.bytes_per_second() / 1e9, row.predicted, row.logits_hash);
            }
        } else {
            ordered_json list = ordered_json::array();
            for (const Row& row : rows) list.push_back(as_json(m, settings, row));
            if (format == "json") {
                fmt::print("{}\n", list.dump(2));
            } else {
                for (const ordered_json& row : list) fmt::print("{}\n", row.dump());
            }
        }
    }

    static std::string csv_text(const std::string& text) {
        std::string quoted = "\"";
        for (const char c : text) {
            quoted += c;
            if (c == '"') quoted += c;
        }
        return quoted + '"';
    }

    static ordered_json as_json(const Model& m, const ContextSettings& settings, const Row& row) {
        const Spread speed = row.speed();
        return {{"model", m.file().path()},
                {"model_bytes", m.file().file_bytes()},
                {"n_threads", settings.n_threads},
                {"n_threads_batch", settings.n_threads_batch},
                {"n_batch", settings.n_batch},
                {"n_ubatch", settings.cache.n_ubatch},
                {"type_k", settings.cache.type_k.name},
                {"type_v", settings.cache.type_v.name},
                {"spec", row.spec},
                {"plan", row.canonical},
                {"hash", row.hash},
                {"test", row.test},
                {"n_tokens", row.n_tokens},
                {"n_prompt", row.test.starts_with("pp") ? row.n_tokens : 0},
                {"n_gen", row.test.starts_with("tg") ? row.n_tokens : 0},
                {"avg_ts", speed.mean},
                {"stddev_ts", speed.deviation},
                {"samples_ts", row.samples},
                {"weight_bytes_read_per_run", row.read_bytes},
                {"bytes_read_per_second", row.bytes_per_second()},
                {"predicted_decode_ratio", row.predicted},
                {"logits_hash", row.logits_hash}};
    }
};

}  // namespace

void add_bench(CLI::App& app) {
    auto command = std::make_shared<BenchCommand>();
    CLI::App* const sub = app.add_subcommand(
        "bench", "Measure prompt and generation speed, a row per plan, as llama-bench does");
    command->model.add(*sub);
    sub->add_option("-p,--n-prompt", command->n_prompt, "Prompt lengths, comma-separated; 0 = none")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(whole_number(0, 1 << 24))
        ->capture_default_str();
    sub->add_option("-n,--n-gen", command->n_gen, "Tokens to generate, comma-separated; 0 = none")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(whole_number(0, 1 << 24))
        ->capture_default_str();
    sub->add_option("-d,--n-depth", command->depth, "Tokens in the cache before a test begins")
        ->check(whole_number(0, 1 << 24));
    sub->add_option("-r,--repetitions", command->repetitions, "Counted repetitions of each test")
        ->check(whole_number(1, 1000000))
        ->capture_default_str();
    sub->add_flag("--no-warmup", command->no_warmup, "Count the first run too");
    sub->add_option("-o,--output", command->format, "Format of the result")
        ->check(CLI::IsMember({"md", "csv", "json", "jsonl"}))
        ->capture_default_str();
    command->plan.add(*sub);
    sub->add_option("--spec", command->specs,
                    "A plan in its one-line form; several give a row each (\"\" = identity)")
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->excludes("--repeat-layers", "--layers", "--skip-layers", "--drop-attention", "--drop-ffn",
                   "--plan")
        ->group("Layer plan");
    command->context.add(*sub, false);
    sub->footer(
        "Examples:\n"
        "  pleat bench model.gguf -p 512 -n 128\n"
        "  pleat bench model.gguf -n 64 --spec \"\" --spec \"26,34\" --spec \"drop:3,7\" -o json");
    sub->callback([command] { command->run(); });
}

}  // namespace pleat::cli
