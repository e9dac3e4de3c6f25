#pragma once

#include <functional>
#include <memory>

#include "cli/options.h"
#include "engine/context.h"
#include "model/model.h"

namespace pleat::cli {

struct Loaded {
    std::shared_ptr<Model> model;
    std::unique_ptr<Context> context;
    double load_ms = 0.0;
};

/// The road of every command that computes: open, resolve the plan, load, print the load log to
/// stderr (unless quiet). `adjust` may change the settings before anything is allocated.
Loaded load_context(const ModelArgument& model, const PlanOptions& plan,
                    const ContextOptions& options,
                    const std::function<void(ContextSettings&)>& adjust = {});

/// A progress bar on stderr where that is a terminal and the load takes long enough to see it.
LoadProgress progress_bar(bool quiet);

}  // namespace pleat::cli
