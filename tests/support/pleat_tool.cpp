#include "support/pleat_tool.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/error.h"

namespace pleat::test {

PleatProcess::PleatProcess(const std::vector<std::string>& arguments, std::string_view input)
    : in_(".in", input) {
    static const std::string program = PLEAT_PROGRAM;
    std::vector<char*> argv{const_cast<char*>(program.c_str())};
    // exec's interface is older than const; it changes nothing.
    for (const std::string& word : arguments) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);

    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, in_.path().c_str(), O_RDONLY, 0);
    constexpr int flags = O_WRONLY | O_CREAT | O_TRUNC;
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out_.path().c_str(), flags, 0600);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err_.path().c_str(), flags, 0600);
    // A shell ignores SIGINT on behalf of what it starts in the background; a child inherits that.
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t defaults;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGINT);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    const int error =
        posix_spawn(&child_, program.c_str(), &actions, &attributes, argv.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) fail("{} cannot be started: {}", program, std::strerror(error));
}

PleatProcess::~PleatProcess() {
    if (child_ < 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
}

void PleatProcess::send(int signal) const { ::kill(child_, signal); }

bool PleatProcess::ended() const {
    siginfo_t info{};
    const int flags = WEXITED | WNOHANG | WNOWAIT;
    return ::waitid(P_PID, static_cast<id_t>(child_), &info, flags) == 0 && info.si_pid == child_;
}

ToolRun PleatProcess::wait() {
    int status = 0;
    while (::waitpid(child_, &status, 0) < 0) {
        if (errno != EINTR) fail("waiting for pleat: {}", std::strerror(errno));
    }
    child_ = -1;
    return {.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status),
            .out = read_bytes(out_.path()),
            .err = read_bytes(err_.path())};
}

ToolRun run_pleat(const std::vector<std::string>& arguments, std::string_view input) {
    return PleatProcess(arguments, input).wait();
}

}  // namespace pleat::test
