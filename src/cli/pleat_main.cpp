#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/numbers.h"
#include "cli/options.h"

namespace {

std::string command_names(const CLI::App& app) {
    std::string names;
    for (const CLI::App* command : app.get_subcommands({})) {
        names += (names.empty() ? "" : ", ") + command->get_name();
    }
    return names;
}

int run(int argc, char** argv) {
    using namespace pleat::cli;
    CLI::App app{
        "Runs GGUF models with a layer plan: layers repeated, skipped, or without their attention\n"
        "or FFN, from the same file and the same weights.",
        "pleat"};
    app.set_version_flag("--version", std::string("pleat ") + PLEAT_VERSION);
    app.require_subcommand(1);
    app.footer(
        "Examples:\n"
        "  pleat inspect model.gguf\n"
        "  pleat plan model.gguf --repeat-layers \"26,34\"\n"
        "  pleat run model.gguf -p \"Once upon a time\" -n 64 --repeat-layers \"26,34\"\n"
        "Each command has its own help: pleat run --help");
    add_inspect(app);
    add_plan(app);
    add_run(app);
    add_chat(app);
    add_serve(app);
    add_perplexity(app);
    add_eval(app);
    add_scan(app);
    add_calibrate(app);
    add_search(app);
    add_bench(app);
    add_logits(app);
    add_bake(app);

    std::vector<std::string> arguments = expand_short_names(argc, argv);
    tidy_flags(app);
    if (!arguments.empty() && !arguments.front().starts_with('-')) {
        const CLI::App* const command = app.get_subcommand_no_throw(arguments.front());
        if (command == nullptr) {
            pleat::fail("there is no command {}; commands: {}", arguments.front(),
                        command_names(app));
        }
        refuse_unknown_flags(*command, arguments);
    }
    std::ranges::reverse(arguments);  // CLI11 takes them from the back
    try {
        app.parse(arguments);
    } catch (const CLI::Success& success) {  // --help, --version
        return app.exit(success);
    } catch (const CLI::RuntimeError& status) {  // a command that ended early and has said why
        return status.get_exit_code();
    } catch (const CLI::ParseError& error) {
        fmt::print(stderr, "pleat: {} (see pleat --help)\n", error.what());
        return 1;
    }
    return 0;
}

}  // namespace

/// A result that did not reach its reader is no success.
void flush_output() {
    std::cout.flush();
    if (!std::cout || std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
        pleat::fail("cannot write to the standard output: {}", std::strerror(errno));
    }
}

int main(int argc, char** argv) {
    try {
        const int status = run(argc, argv);
        if (status == 0) flush_output();
        return status;
    } catch (const std::exception& error) {
        fmt::print(stderr, "pleat: {}\n", error.what());
        return 1;
    }
}
