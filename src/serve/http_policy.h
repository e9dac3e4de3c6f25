#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/http_error.h"
#include "serve/http_head.h"
#include "serve/http_settings.h"

namespace pleat {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

/// An answer that no handler gave.
struct HttpAnswer {
    int status = 0;
    HttpHeaders headers = {};
    std::string body = {};  ///< JSON
};
HttpAnswer answer_of(const RequestError& error);

/// The paths that are served, and by which methods.
class HttpRoutes {
  public:
    /// A segment ":name" stands for any one segment.
    void add(std::string_view method, const std::string& path);
    /// The methods of a path as it was sent; empty: there is no such path.
    std::vector<std::string> methods(std::string_view path) const;

  private:
    struct Route {
        std::string path;
        std::vector<std::string> methods;
    };
    std::vector<Route> routes_;
};

/// Who may ask for what: decided from the head alone, before a byte of the body is taken.
class HttpPolicy {
  public:
    /// The settings must outlive it.
    explicit HttpPolicy(const HttpSettings& settings);

    HttpRoutes& routes() { return routes_; }
    /// Bound to this machine's own address, where web pages in its user's browser are to be feared.
    void set_loopback(bool loopback) { loopback_ = loopback; }

    /// Nothing: the request may go on to its handler. Until `ready` it may not.
    std::optional<HttpAnswer> refuse(const HttpHead& head, bool ready) const;
    /// What a browser wants to see in any answer to this request; nothing without CORS.
    HttpHeaders cors_headers(const HttpHead& head) const;

  private:
    void check_host(const HttpHead& head) const;
    void check_origin(const HttpHead& head) const;
    void check_key(const HttpHead& head) const;
    void check_body(const HttpHead& head) const;
    std::optional<HttpAnswer> check_route(const HttpHead& head) const;
    bool cors_allows(std::string_view origin) const;

    const HttpSettings& settings_;
    bool loopback_ = true;
    std::vector<std::string> key_hashes_;
    HttpRoutes routes_;
};

}  // namespace pleat
