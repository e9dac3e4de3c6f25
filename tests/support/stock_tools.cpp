#include "support/stock_tools.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <sstream>

#include "base/error.h"
#include "support/temp_file.h"

namespace pleat::test {
namespace {

const std::string script = PLEAT_SOURCE_DIR "/scripts/stock.sh";

/// posix_spawn with output into files: a pipe that nobody empties would stop the program.
ToolRun run(const std::vector<std::string>& command) {
    const TempFile out(".out");
    const TempFile err(".err");
    std::vector<char*> argv;
    // exec's interface is older than const; it changes nothing.
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);

    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    constexpr int flags = O_WRONLY | O_CREAT | O_TRUNC;
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.path().c_str(), flags, 0600);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.path().c_str(), flags, 0600);
    pid_t child = 0;
    const int error = posix_spawn(&child, argv.front(), &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) fail("{} cannot be started: {}", command.front(), std::strerror(error));

    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) fail("waiting for {}: {}", command.front(), std::strerror(errno));
    }
    return {.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status),
            .out = read_bytes(out.path()),
            .err = read_bytes(err.path())};
}

}  // namespace

bool have_stock_tool(std::string_view name) {
    std::istringstream listed(run({script, "--list"}).out);
    for (std::string line; std::getline(listed, line);) {
        if (line == name) return true;
    }
    return false;
}

ToolRun run_stock_tool(const std::string& name, const std::vector<std::string>& arguments) {
    std::vector<std::string> command{script, name};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return run(command);
}

ToolRun require_stock_tool(const std::string& name, const std::vector<std::string>& arguments) {
    ToolRun result = run_stock_tool(name, arguments);
    if (result.status != 0) {
        fail("{} {} ended with status {}:\n{}", name, fmt::join(arguments, " "), result.status,
             result.err);
    }
    return result;
}

namespace {

/// What these programs print passes through a thread of theirs that their end does not wait for:
/// now and then the tail is missing, with status 0. `last_words` on standard error, printed after
/// all that matters, prove that it is complete.
ToolRun run_until_complete(const std::string& name, const std::vector<std::string>& arguments,
                           std::string_view last_words) {
    constexpr int attempts = 20;
    for (int i = 0; i < attempts; ++i) {
        ToolRun result = require_stock_tool(name, arguments);
        if (result.err.find(last_words) != std::string::npos) return result;
    }
    fail("the output of {} was incomplete {} times", name, attempts);
}

}  // namespace

double stock_perplexity(const std::string& model, const std::string& text_file, int n_ctx) {
    const std::string said =
        run_until_complete("llama-perplexity",
                           {"-m", model, "-f", text_file, "-c", std::to_string(n_ctx), "-t", "1"},
                           " +/- ")
            .err;
    static constexpr std::string_view mark = "Final estimate: PPL = ";
    const size_t at = said.find(mark);
    if (at == std::string::npos) fail("llama-perplexity gives no estimate:\n{}", said);
    return std::stod(said.substr(at + mark.size()));
}

std::string stock_completion(const std::string& model, const std::string& prompt, int n_predict) {
    const ToolRun result = run_until_complete(
        "llama-completion",
        {"-m", model, "-p", prompt, "--no-escape", "-n", std::to_string(n_predict), "--temp", "0",
         "--ignore-eos", "-no-cnv", "--no-display-prompt", "-c", "512", "-t", "1"},
        "common_perf_print:");
    // It ends its output with an empty line of its own.
    static constexpr std::string_view end = "\n\n";
    if (!result.out.ends_with(end)) fail("unexpected end of output \"{}\"", result.out);
    return result.out.substr(0, result.out.size() - end.size());
}

}  // namespace pleat::test
