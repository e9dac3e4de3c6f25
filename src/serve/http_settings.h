#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace pleat {

/// One answered request, for a log.
struct HttpLogEntry {
    std::string client = {};  ///< address
    std::string method = {};
    std::string path = {};  ///< as sent, without the query
    int status = 0;
    double milliseconds = 0.0;  ///< from the whole head to the last byte of the answer
    std::string body = {};      ///< of the request, only with log_bodies
};

/// Who may connect, and how much of this machine one client can hold.
struct HttpSettings {
    std::string host = "127.0.0.1";
    int port = 8080;                         ///< 0: any free one
    std::vector<std::string> api_keys = {};  ///< empty: no key is asked for
    std::vector<std::string> public_paths = {"/health", "/v1/health"};  ///< need no key
    /// Origins of web pages that may use the server: "*", "localhost" (any port), or as browsers
    /// write them. Empty: no CORS headers.
    std::vector<std::string> cors_origins = {};
    std::vector<std::string> allowed_hosts = {};  ///< Host names to take on loopback, too
    size_t max_connections = 512;  ///< more are answered 503; idle ones make room first
    size_t max_body_bytes = size_t{16} << 20;
    size_t max_header_bytes = 32 << 10;
    size_t max_uri_bytes = 8 << 10;
    std::chrono::milliseconds header_time{10'000};  ///< from a request's first byte
    std::chrono::milliseconds body_time{60'000};    ///< and one second more per 16 KiB
    std::chrono::milliseconds idle_time{30'000};    ///< of a connection between requests
    std::chrono::milliseconds write_time{60'000};   ///< without one byte being taken
    bool log_bodies = false;
    std::function<void(const HttpLogEntry&)> log = {};       ///< called from many threads
    std::function<void(const std::string&)> log_error = {};  ///< one line; likewise
};

}  // namespace pleat
