#include "serve/http_policy.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/sha256.h"

namespace pleat {
namespace {

/// "name:8080", "[::1]:8080" → without the port.
std::string_view without_port(std::string_view host) {
    const size_t colon = host.rfind(':');
    if (colon == std::string_view::npos) return host;
    const size_t bracket = host.rfind(']');
    if (bracket != std::string_view::npos && colon < bracket) return host;  // an address' own
    const std::string_view port = host.substr(colon + 1);
    const bool digits = std::ranges::all_of(port, [](char c) { return c >= '0' && c <= '9'; });
    return digits ? host.substr(0, colon) : host;
}

bool is_this_machine(std::string_view host) {
    return same_ignoring_case(host, "localhost") || host == "127.0.0.1" || host == "[::1]";
}

std::string_view host_of_origin(std::string_view origin) {
    for (const std::string_view scheme : {"http://", "https://"}) {
        if (origin.starts_with(scheme)) return without_port(origin.substr(scheme.size()));
    }
    return {};
}

std::string_view media_type(std::string_view content_type) {
    const std::string_view type = content_type.substr(0, content_type.find(';'));
    return type.substr(0, type.find_last_not_of(" \t") + 1);
}

/// In the same time whatever the texts are; both are hashes, so of one length.
bool same_hash(std::string_view a, std::string_view b) {
    unsigned difference = 0;
    for (size_t i = 0; i < a.size(); ++i) {
        difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
    }
    return difference == 0;
}

std::string_view key_of(const HttpHead& head) {
    constexpr std::string_view scheme = "Bearer ";
    const std::string_view value = head.header("authorization");
    if (value.size() > scheme.size() &&
        same_ignoring_case(value.substr(0, scheme.size()), scheme)) {
        return value.substr(scheme.size());
    }
    return head.header("x-api-key");
}

bool segments_match(std::string_view pattern, std::string_view path) {
    while (!pattern.empty() && !path.empty()) {
        if (pattern.front() != '/' || path.front() != '/') return false;
        const size_t pattern_end = std::min(pattern.find('/', 1), pattern.size());
        const size_t path_end = std::min(path.find('/', 1), path.size());
        const bool any = pattern.size() > 1 && pattern[1] == ':' && path_end > 1;
        if (!any && pattern.substr(0, pattern_end) != path.substr(0, path_end)) return false;
        pattern.remove_prefix(pattern_end);
        path.remove_prefix(path_end);
    }
    return pattern.empty() && path.empty();
}

}  // namespace

HttpAnswer answer_of(const RequestError& error) {
    HttpAnswer answer{.status = error.status(),
                      .headers = {},
                      .body = error.body().dump(-1, ' ', false,
                                                nlohmann::ordered_json::error_handler_t::replace)};
    if (answer.status == 503) answer.headers.emplace_back("Retry-After", "1");
    if (answer.status == 401) answer.headers.emplace_back("WWW-Authenticate", "Bearer");
    return answer;
}

void HttpRoutes::add(std::string_view method, const std::string& path) {
    const auto found = std::ranges::find(routes_, path, &Route::path);
    Route& route = found == routes_.end() ? routes_.emplace_back() : *found;
    route.path = path;
    route.methods.emplace_back(method);
    if (method == "GET") route.methods.emplace_back("HEAD");
}

std::vector<std::string> HttpRoutes::methods(std::string_view path) const {
    for (const Route& route : routes_) {
        if (segments_match(route.path, path)) return route.methods;
    }
    return {};
}

HttpPolicy::HttpPolicy(const HttpSettings& settings) : settings_(settings) {
    for (const std::string& key : settings.api_keys) key_hashes_.push_back(sha256(key));
}

std::optional<HttpAnswer> HttpPolicy::refuse(const HttpHead& head, bool ready) const {
    try {
        if (loopback_) {
            check_host(head);
            check_origin(head);
        }
        const bool preflight =
            head.method == "OPTIONS" && head.has("origin") && !settings_.cors_origins.empty();
        if (preflight) return HttpAnswer{.status = 204, .headers = {}, .body = {}};
        check_key(head);
        if (!ready) throw RequestError(503, "Loading model");
        if (auto answer = check_route(head)) return answer;
        check_body(head);
    } catch (const RequestError& error) {
        return answer_of(error);
    }
    return {};
}

void HttpPolicy::check_host(const HttpHead& head) const {
    const std::string_view host = without_port(head.header("host"));
    if (is_this_machine(host) || same_ignoring_case(host, settings_.host)) return;
    for (const std::string& allowed : settings_.allowed_hosts) {
        if (same_ignoring_case(host, allowed)) return;
    }
    // Not the name itself: it need not be fit to print.
    throw RequestError(
        403,
        "the Host header names another machine than localhost, 127.0.0.1 or [::1]; "
        "this server is for this machine alone (--host or --allowed-host change it)");
}

void HttpPolicy::check_origin(const HttpHead& head) const {
    if (!head.has("origin")) return;
    const std::string_view origin = head.header("origin");
    if (cors_allows(origin)) return;
    if (origin == fmt::format("http://{}", head.header("host"))) return;
    if (settings_.cors_origins.empty()) {
        throw RequestError(403,
                           "the request comes from a web page (Origin header), and none may use "
                           "this server (--cors-origin allows one)");
    }
    throw RequestError(403,
                       fmt::format("the request comes from a web page (Origin header) that is "
                                   "none of those that may use this server (--cors-origin): {}",
                                   fmt::join(settings_.cors_origins, ", ")));
}

bool HttpPolicy::cors_allows(std::string_view origin) const {
    return std::ranges::any_of(settings_.cors_origins, [&](const std::string& allowed) {
        if (allowed == "*") return true;
        if (allowed == "localhost") return is_this_machine(host_of_origin(origin));
        return same_ignoring_case(allowed, origin);
    });
}

HttpHeaders HttpPolicy::cors_headers(const HttpHead& head) const {
    if (settings_.cors_origins.empty()) return {};
    HttpHeaders headers{{"Vary", "Origin"}};
    const std::string_view origin = head.header("origin");
    if (origin.empty() || !cors_allows(origin)) return headers;
    headers.emplace_back("Access-Control-Allow-Origin", origin);
    if (head.method != "OPTIONS") return headers;
    headers.emplace_back("Access-Control-Allow-Methods", "GET, HEAD, POST, OPTIONS");
    const std::string_view wanted = head.header("access-control-request-headers");
    headers.emplace_back("Access-Control-Allow-Headers",
                         wanted.empty() ? "authorization, content-type, x-api-key" : wanted);
    headers.emplace_back("Access-Control-Max-Age", "600");
    if (head.header("access-control-request-private-network") == "true") {
        headers.emplace_back("Access-Control-Allow-Private-Network", "true");
    }
    return headers;
}

void HttpPolicy::check_key(const HttpHead& head) const {
    if (key_hashes_.empty()) return;
    if (std::ranges::find(settings_.public_paths, head.path()) != settings_.public_paths.end()) {
        return;
    }
    // Hashes are of one length, and all keys are compared: the time says nothing about any.
    const std::string hash = sha256(key_of(head));
    bool known = false;
    for (const std::string& key : key_hashes_) known |= same_hash(hash, key);
    if (!known) throw RequestError(401, "Invalid API Key");
}

std::optional<HttpAnswer> HttpPolicy::check_route(const HttpHead& head) const {
    const std::vector<std::string> methods = routes_.methods(head.path());
    if (methods.empty()) throw RequestError(404, "there is no such path");
    if (std::ranges::find(methods, head.method) != methods.end()) return {};
    const std::string allowed = fmt::format("{}", fmt::join(methods, ", "));
    HttpAnswer answer = answer_of(
        RequestError(405, fmt::format("this path takes {}, not {}", allowed, head.method)));
    answer.headers.emplace_back("Allow", allowed);
    return answer;
}

void HttpPolicy::check_body(const HttpHead& head) const {
    // An HTML form or a script without CORS can send other types across origins, but not this one.
    if (loopback_ && head.method == "POST" &&
        !same_ignoring_case(media_type(head.header("content-type")), "application/json")) {
        throw RequestError(415, "Content-Type is not application/json");
    }
    const std::string_view encoding = head.header("content-encoding");
    if (!encoding.empty() && !same_ignoring_case(encoding, "identity")) {
        throw RequestError(415, "compressed bodies (Content-Encoding) are not taken");
    }
    if (head.has("expect") && !same_ignoring_case(head.header("expect"), "100-continue")) {
        throw RequestError(417, "Expect is not 100-continue");
    }
    if (head.method == "POST" && !head.chunked && !head.content_length) {
        throw RequestError(411, "a POST needs Content-Length or Transfer-Encoding: chunked");
    }
    if (head.content_length.value_or(0) > settings_.max_body_bytes) {
        throw RequestError(413, fmt::format("the body has {} bytes, at most {} are taken",
                                            *head.content_length, settings_.max_body_bytes));
    }
}

}  // namespace pleat
