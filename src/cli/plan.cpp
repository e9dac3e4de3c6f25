#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "arch/registry.h"
#include "cli/commands.h"
#include "cli/numbers.h"
#include "cli/options.h"
#include "cli/plan_report.h"

namespace pleat::cli {
namespace {

struct PlanCommand {
    ModelArgument model;
    PlanOptions plan;
    ContextOptions context;
    std::string spec;
    uint32_t n_seq = 1;
    bool json = false;

    void run() const {
        const auto warnings = context.warnings();
        const auto file = open_model(model.model());
        const ModelShape& shape = file->shape();
        const LayerPlan resolved =
            spec.empty() ? plan.resolve(*file) : plan.resolve_spec(spec, "--spec", *file);
        CacheSettings settings = context.settings(shape).cache;
        settings.n_seq = n_seq;
        if (json) {
            fmt::print("{}\n", plan_json(resolved, shape, settings).dump(2));
        } else {
            fmt::print("{}", plan_text(resolved, shape, settings));
        }
        for (const std::string& warning : warnings) fmt::print(stderr, "warning: {}\n", warning);
    }
};

}  // namespace

void add_plan(CLI::App& app) {
    auto command = std::make_shared<PlanCommand>();
    CLI::App* const sub =
        app.add_subcommand("plan", "Show what a plan runs and costs, from the file's header alone");
    command->model.add(*sub);
    command->plan.add(*sub);
    sub->add_option("--spec", command->spec, "The plan in its one-line form: \"26,34+drop:3,7\"")
        ->group("Layer plan")
        ->excludes("--repeat-layers", "--layers", "--skip-layers", "--drop-attention", "--drop-ffn",
                   "--plan");
    command->context.add(*sub);
    sub->add_option("--parallel", command->n_seq, "-np: sequences to size the cache for")
        ->check(whole_number(1, 256))
        ->group("Context");
    sub->add_flag("--json", command->json, "One JSON object instead of text");
    sub->footer(
        "Examples:\n"
        "  pleat plan model.gguf --repeat-layers \"26,34\"\n"
        "  pleat plan model.gguf --layers \"0..33,26..33[-attn],34..63\" -c 8192 --json");
    sub->callback([command] { command->run(); });
}

}  // namespace pleat::cli
