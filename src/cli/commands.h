#pragma once

#include <CLI/CLI.hpp>

namespace pleat::cli {

// One file per command. Each adds its subcommand with flags, help and examples, and a callback that
// makes one call and prints; what stops it throws Error, which main prints as one line.
void add_bake(CLI::App& app);
void add_bench(CLI::App& app);
void add_calibrate(CLI::App& app);
void add_chat(CLI::App& app);
void add_eval(CLI::App& app);
void add_inspect(CLI::App& app);
void add_logits(CLI::App& app);
void add_perplexity(CLI::App& app);
void add_plan(CLI::App& app);
void add_run(CLI::App& app);
void add_scan(CLI::App& app);
void add_search(CLI::App& app);
void add_serve(CLI::App& app);

}  // namespace pleat::cli
