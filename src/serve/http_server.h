#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace httplib {
class Server;
struct Request;
struct Response;
}  // namespace httplib

namespace pleat {

/// Who may connect, and how much of this machine one client can hold.
struct HttpSettings {
    std::string host = "127.0.0.1";
    int port = 8080;  ///< 0: any free one
    std::vector<std::string> api_keys = {};       ///< empty: no key is asked for
    std::vector<std::string> public_paths = {"/health", "/v1/health"};  ///< need no key
    std::string cors_origin = {};  ///< empty: no CORS headers
    size_t max_connections = 512;  ///< more are answered 503; idle ones make room first
    size_t max_body_bytes = size_t{16} << 20;
    size_t max_header_bytes = 32 << 10;
    std::chrono::milliseconds header_time{10'000};  ///< from a request's first byte
    std::chrono::milliseconds body_time{60'000};
    std::chrono::milliseconds idle_time{30'000};  ///< of a kept connection
    std::chrono::milliseconds write_time{60'000};  ///< without one byte being taken
};

/// cpp-httplib with a policy: bounded connections, sizes and times; API keys compared in constant
/// time; on loopback only requests to this very host (the Host header), and POST with
/// application/json, so that no web page can use the server behind its user's back; errors are
/// OpenAI's JSON whoever reports them. Routes are added to routes() before listening.
class HttpServer {
  public:
    explicit HttpServer(HttpSettings settings);
    ~HttpServer();

    httplib::Server& routes();

    /// Throws Error when the address is taken or does not exist. Returns the port.
    int bind();
    /// Serves until stop(); call after bind().
    void listen();
    /// From any thread: takes no new connection; requests under way end first.
    void stop();

    size_t n_connections() const;

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

/// An error in OpenAI's form: {"error": {"code": status, "message", "type", "param"}}.
void set_error(httplib::Response& response, int status, std::string_view message,
               std::string_view param = {});

}  // namespace pleat
