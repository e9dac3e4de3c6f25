#pragma once

#include <sys/types.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "support/pleat_tool.h"
#include "support/raw_client.h"

namespace pleat::test {

/// A response as it came, taken apart.
struct HttpResponse {
    int status = 0;
    std::string head = {};
    std::string body = {};  ///< of a chunked one without the chunks' frames
    nlohmann::json json() const { return nlohmann::json::parse(body); }
    /// A header's value; empty: none.
    std::string header(std::string_view name) const;
};
HttpResponse read_response(const std::string& text);

/// `pleat serve` as a child process on a free port of this machine.
class ServerProcess {
  public:
    /// Starts it with these arguments (the model first) and waits until it listens. Throws Error
    /// with what it wrote when it ends before.
    explicit ServerProcess(std::vector<std::string> arguments);

    int port() const { return port_; }
    std::string url() const;
    RawClient connect() const { return RawClient(port_); }

    /// One request on a connection of its own, read to its end.
    HttpResponse get(const std::string& path, const std::string& headers = "") const;
    HttpResponse post(const std::string& path, const nlohmann::json& body,
                      const std::string& headers = "") const;
    HttpResponse request(const std::string& text) const;

    /// The texts of the two, for connections that go on.
    static std::string get_text(const std::string& path, const std::string& headers = "");
    static std::string post_text(const std::string& path, const std::string& body,
                                 const std::string& headers = "");

    /// What it has written to stderr so far.
    std::string log() const { return process_.err(); }
    pid_t pid() const { return process_.pid(); }
    void send(int signal) const { process_.send(signal); }
    bool ended() { return process_.ended(); }
    /// Waits for its end; once.
    ToolRun wait() { return process_.wait(); }
    /// SIGTERM, and its end.
    ToolRun stop();

  private:
    PleatProcess process_;
    int port_ = 0;
};

/// Polls until it is so, in a generous bound that ends a test which would never end.
template <typename Condition>
bool soon(Condition condition) {
    using namespace std::chrono_literals;
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > deadline) return false;
        std::this_thread::sleep_for(5ms);
    }
    return true;
}

}  // namespace pleat::test
