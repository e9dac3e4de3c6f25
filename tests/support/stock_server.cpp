#include "support/stock_server.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <csignal>
#include <cstring>

#include "base/error.h"

namespace pleat::test {
namespace {

/// One that nobody listens on; it may be taken by another before it is used.
int free_port() {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    const bool bound = ::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                       ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
    ::close(fd);
    if (!bound) fail("there is no free port: {}", std::strerror(errno));
    return ntohs(address.sin_port);
}

pid_t start(const std::vector<std::string>& command, const std::string& log) {
    std::vector<char*> argv;
    // exec's interface is older than const; it changes nothing.
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    constexpr int flags = O_WRONLY | O_CREAT | O_TRUNC;
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), flags, 0600);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    pid_t child = -1;
    const int error = posix_spawn(&child, argv.front(), &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) fail("{} cannot be started: {}", command.front(), std::strerror(error));
    return child;
}

}  // namespace

StockServer::StockServer(std::vector<std::string> arguments) : port_(free_port()) {
    std::vector<std::string> command{PLEAT_SOURCE_DIR "/scripts/stock.sh",
                                     "llama-server",
                                     "--port",
                                     std::to_string(port_),
                                     "-t",
                                     "1",
                                     "--metrics"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    child_ = start(command, log_.path());
    if (!soon([this] { return answers(); })) {
        fail("llama-server does not answer: {}", read_bytes(log_.path()));
    }
}

StockServer::~StockServer() {
    if (child_ < 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
}

bool StockServer::answers() const {
    try {
        return get("/health").status == 200;
    } catch (const std::exception&) {  // nobody listens yet
        return false;
    }
}

HttpResponse StockServer::get(const std::string& path) const {
    RawClient client(port_);
    return read_response(
        client.send(ServerProcess::get_text(path, "Connection: close\r\n")).read_all());
}

HttpResponse StockServer::post(const std::string& path, const nlohmann::json& body) const {
    RawClient client(port_);
    const std::string text = ServerProcess::post_text(path, body.dump(), "Connection: close\r\n");
    return read_response(client.send(text).read_all());
}

}  // namespace pleat::test
