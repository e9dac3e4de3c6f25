#include "bake/bake.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>

#include "arch/registry.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/options.h"

namespace pleat::cli {
namespace {

struct BakeCommand {
    ModelArgument model;
    PlanOptions plan;
    std::string as = "same";
    bool force = false;
    bool quiet = false;

    void run() const {
        const std::string out = model.more(0, "OUT.gguf, the file to write,");
        const auto file = open_model(model.model());
        const LayerPlan layer_plan = plan.resolve(*file);
        for (const std::string& warning : layer_plan.warnings()) {
            fmt::print(stderr, "warning: {}\n", warning);
        }
        const BakeReport report =
            bake(*file, layer_plan, out,
                 {.as = as == "deci" ? BakeFormat::deci : BakeFormat::same, .force = force});
        for (const std::string& warning : report.warnings) {
            fmt::print(stderr, "warning: {}\n", warning);
        }
        if (quiet) return;
        fmt::print("{}: {} passes of {} layers, {} bytes ({})\n", out, report.n_pass,
                   file->shape().n_layer, report.bytes, format_bytes(report.bytes));
    }
};

}  // namespace

void add_bake(CLI::App& app) {
    auto command = std::make_shared<BakeCommand>();
    CLI::App* const sub =
        app.add_subcommand("bake", "Write a plan as a GGUF file of its own that llama.cpp runs");
    command->model.add(*sub, 1, "OUT.gguf, the file to write");
    command->plan.add(*sub);
    sub->add_option("--as", command->as,
                    "same: the model's architecture, what is dropped gets zeros; deci: a llama "
                    "becomes a deci, whose layers may do without attention")
        ->check(CLI::IsMember({"same", "deci"}))
        ->capture_default_str();
    sub->add_flag("--force", command->force, "Overwrite OUT.gguf if it exists");
    sub->add_flag("-q,--quiet", command->quiet, "Do not say what was written");
    sub->footer(
        "Repeated layers are written again, so the file grows; weights are copied byte for byte.\n"
        "Examples:\n"
        "  pleat bake model.gguf repeated.gguf --repeat-layers \"26,34\"\n"
        "  pleat bake model.gguf light.gguf --drop-attention \"30..40\" --as deci");
    sub->callback([command] { command->run(); });
}

}  // namespace pleat::cli
