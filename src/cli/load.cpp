#include "cli/load.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <utility>

#include "arch/registry.h"
#include "cli/plan_report.h"

namespace pleat::cli {

LoadProgress progress_bar(bool quiet) {
    if (quiet || ::isatty(STDERR_FILENO) == 0) return {};
    const auto start = std::chrono::steady_clock::now();
    return [start, shown = false](float fraction) mutable {
        const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
        if (elapsed.count() < 0.5 && !shown) return true;
        shown = true;
        constexpr int width = 40;
        const int filled = static_cast<int>(fraction * width);
        fmt::print(stderr, "\rloading [{:#<{}}{:.<{}}] {:3.0f} %", "", filled, "", width - filled,
                   fraction * 100.0F);
        if (fraction >= 1.0F) fmt::print(stderr, "\r{:{}}\r", "", width + 20);
        return true;
    };
}

Loaded load_context(const ModelArgument& model, const PlanOptions& plan,
                    const ContextOptions& options,
                    const std::function<void(ContextSettings&)>& adjust) {
    const auto start = std::chrono::steady_clock::now();
    const std::vector<std::string> warnings = options.warnings();
    load_backends_from_environment();
    Loaded loaded;
    loaded.model = open_model(model.model(), options.model_options());
    ContextSettings settings = options.settings(loaded.model->shape());
    if (adjust) adjust(settings);
    LayerPlan layer_plan = plan.resolve(*loaded.model);
    if (!options.quiet()) {
        for (const std::string& warning : warnings) fmt::print(stderr, "warning: {}\n", warning);
        fmt::print(stderr, "{}", load_log(layer_plan, loaded.model->shape(), settings.cache));
    }
    loaded.context = std::make_unique<Context>(loaded.model, std::move(layer_plan), settings,
                                               progress_bar(options.quiet()));
    const std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - start;
    loaded.load_ms = elapsed.count();
    return loaded;
}

}  // namespace pleat::cli
