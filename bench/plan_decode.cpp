#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "arch/registry.h"
#include "base/error.h"
#include "engine/context.h"
#include "engine/path_runner.h"
#include "lab/prefill.h"
#include "lab/scorer.h"
#include "model/backend.h"
#include "plan/spec.h"

// bench_plan_decode <together|alone> <model> <threads> <n_prompt> <n_generated> <spec>...: one
// sequence of every plan, decoded together or plan after plan. Prints one line of JSON; the prompts
// and loading are not in the time.
namespace pleat {
namespace {

struct Run {
    std::shared_ptr<Model> model;
    std::vector<LayerPlan> plans;
    ContextSettings settings;
    std::vector<int32_t> prompt;
    size_t n_generated = 0;
};

double seconds_now() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double>(now).count();
}

double cpu_seconds_now() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

struct Measured {
    double seconds = 0.0;
    double cpu_seconds = 0.0;  ///< of all threads: what a busy machine disturbs less
    uint64_t bytes = 0;
};

Measured together(const Run& run) {
    const auto n_ctx = static_cast<uint32_t>(run.prompt.size() + run.n_generated);
    Prefill prefill(run.model, run.plans, run.settings, n_ctx);
    PathRunner runner(run.model, run.plans, 1, n_ctx, run.settings);
    std::vector<int32_t> tokens(run.plans.size());
    for (uint32_t p = 0; p < run.plans.size(); ++p) {
        runner.begin(p, p, static_cast<uint32_t>(run.prompt.size()));
    }
    prefill.run(
        run.prompt,
        {.on_pass = [&](size_t plan, size_t index, const PassRunner& from,
                        size_t s) { runner.take(plan, index, from, s); },
         .on_logits = [&](size_t plan, std::span<const float> l) { tokens[plan] = likeliest(l); }});
    const double start = seconds_now();
    const double cpu_start = cpu_seconds_now();
    for (size_t i = 0; i < run.n_generated; ++i) {
        runner.step(tokens);
        for (size_t p = 0; p < tokens.size(); ++p) tokens[p] = likeliest(runner.logits(p));
    }
    return {seconds_now() - start, cpu_seconds_now() - cpu_start,
            prefill.peak_bytes() + runner.buffer_bytes()};
}

Measured alone(const Run& run) {
    Measured all;
    for (const LayerPlan& plan : run.plans) {
        ContextSettings settings = run.settings;
        settings.cache.n_ctx = static_cast<uint32_t>(run.prompt.size() + run.n_generated);
        Context context(run.model, plan, settings);
        const auto decode = [&](std::span<const int32_t> tokens) {
            if (context.decode(0, tokens) != DecodeStatus::ok) fail("a step did not run");
            return likeliest(context.logits(0));
        };
        int32_t token = decode(run.prompt);
        const double start = seconds_now();
        const double cpu_start = cpu_seconds_now();
        for (size_t i = 0; i < run.n_generated; ++i) token = decode(std::span(&token, 1));
        all.seconds += seconds_now() - start;
        all.cpu_seconds += cpu_seconds_now() - cpu_start;
        all.bytes = std::max(all.bytes, context.cache_bytes() + context.compute_bytes());
    }
    return all;
}

size_t number(std::string_view text) {
    size_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) fail("{}: not a number", text);
    return value;
}

void bench(const std::vector<std::string>& args) {
    load_backends(PLEAT_BACKEND_DIR);
    Run run{.model = open_model(args[1]), .plans = {}, .settings = {}, .prompt = {}};
    run.settings.n_threads = run.settings.n_threads_batch = static_cast<int>(number(args[2]));
    const size_t n_vocab = run.model->hparams().n_vocab;
    for (size_t i = 0; i < number(args[3]); ++i) {
        run.prompt.push_back(static_cast<int32_t>((i * 7919 + 13) % n_vocab));
    }
    run.n_generated = number(args[4]);
    for (size_t i = 5; i < args.size(); ++i) {
        run.plans.push_back(LayerPlan::resolve(parse_spec(args[i]), run.model->shape()));
    }
    const Measured measured = args[0] == "together" ? together(run) : alone(run);
    const auto n = static_cast<double>(run.plans.size() * run.n_generated);
    fmt::print(
        "{{\"plans\": {}, \"tokens_per_second\": {:.3f}, \"tokens_per_cpu_second\": {:.3f}, "
        "\"bytes\": {}}}\n",
        run.plans.size(), n / measured.seconds, n / measured.cpu_seconds, measured.bytes);
}

}  // namespace
}  // namespace pleat

int main(int argc, char** argv) {
    const std::vector<std::string> args(argv + 1, argv + argc);
    if (args.size() < 6 || (args[0] != "together" && args[0] != "alone")) {
        fmt::print(stderr,
                   "usage: bench_plan_decode together|alone MODEL THREADS N_PROMPT N_GENERATED "
                   "SPEC...\n");
        return 1;
    }
    try {
        pleat::bench(args);
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "bench_plan_decode: {}\n", error.what());
        return 1;
    }
}
