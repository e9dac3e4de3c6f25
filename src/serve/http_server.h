#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "serve/http_settings.h"

namespace httplib {
struct Request;
struct Response;
}  // namespace httplib

namespace pleat {

/// Runs on the connection's own thread, several at once. A RequestError it throws is the answer;
/// any other exception is a 500, and the log has its text.
using HttpHandler = std::function<void(const httplib::Request&, httplib::Response&)>;

/// cpp-httplib with a policy: bounded connections, sizes and times; API keys compared in constant
/// time; on loopback only requests to this very host (the Host header), and POST with
/// application/json, so that no web page can use the server behind its user's back; errors are
/// OpenAI's JSON whoever reports them.
///
/// It may listen before there is anything to serve: until ready() all requests are answered 503.
class HttpServer {
  public:
    explicit HttpServer(HttpSettings settings);
    ~HttpServer();
    HttpServer(const HttpServer&) = delete;
    HttpServer& operator=(const HttpServer&) = delete;

    /// Routes are added before ready(). A path is matched as it was sent, nothing decoded; a
    /// segment ":name" takes any one segment (request.path_params). GET answers HEAD, too.
    void get(const std::string& path, HttpHandler handler);
    void post(const std::string& path, HttpHandler handler);
    void ready();

    /// Throws Error when the address is taken or does not exist. Returns the port.
    int bind();
    /// "http://127.0.0.1:8080", once bound.
    std::string url() const;
    /// Only this machine can reach it; once bound.
    bool loopback() const;
    /// Serves until stop() and the end of the last request under way; call after bind().
    void listen();
    /// From any thread: takes no new connection, closes idle ones; requests under way go on.
    void stop();
    /// From any thread: cuts all connections. Handlers see it as a client that went away.
    void abort();

    size_t n_connections() const;

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace pleat
