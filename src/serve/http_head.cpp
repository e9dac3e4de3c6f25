#include "serve/http_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "serve/http_error.h"

namespace pleat {
namespace {

template <typename... Args>
[[noreturn]] void refuse(int status, fmt::format_string<Args...> format, Args&&... args) {
    throw RequestError(status, fmt::format(format, std::forward<Args>(args)...));
}

// Not those of <cctype>, which ask the locale and fear negative values.
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool is_token(std::string_view text) {
    constexpr std::string_view marks = "!#$%&'*+-.^_`|~";
    return !text.empty() && std::ranges::all_of(text, [&](char c) {
        return is_letter(c) || is_digit(c) || marks.find(c) != std::string_view::npos;
    });
}

std::string_view trimmed(std::string_view text) {
    const size_t begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

/// The next line, taken from `text`, without its end.
std::string_view take_line(std::string_view& text) {
    const size_t end = text.find("\r\n");
    if (end == std::string_view::npos) refuse(400, "the request's head does not end");
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 2);
    if (line.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos) {
        refuse(400, "a line of the request's head holds a lone CR, LF or NUL");
    }
    return line;
}

void parse_first_line(std::string_view line, HttpHead& head, const HttpHeadLimits& limits) {
    const size_t first = line.find(' ');
    const size_t last = line.rfind(' ');
    if (first == std::string_view::npos || first == last) {
        refuse(400, "the request's first line is not METHOD /path HTTP/1.1");
    }
    head.method = line.substr(0, first);
    head.target = line.substr(first + 1, last - first - 1);
    const std::string_view version = line.substr(last + 1);
    if (!is_token(head.method)) refuse(400, "the request's method is no word");
    if (version != "HTTP/1.1" && version != "HTTP/1.0") {
        const bool other = version.starts_with("HTTP/") && version.size() == 8;
        refuse(other ? 505 : 400, "the request's first line does not end in HTTP/1.1 or HTTP/1.0");
    }
    head.http_1_0 = version == "HTTP/1.0";
    if (head.target.size() > limits.uri_bytes) {
        refuse(414, "the path has {} bytes, at most {} are taken", head.target.size(),
               limits.uri_bytes);
    }
    if (!head.target.starts_with('/') ||
        !std::ranges::all_of(head.target, [](char c) { return c > ' ' && c < '\x7f'; })) {
        refuse(400, "the request's path does not begin with / or is not printable ASCII");
    }
    constexpr std::array<std::string_view, 7> methods{"GET", "HEAD",  "POST",  "OPTIONS",
                                                      "PUT", "PATCH", "DELETE"};
    if (std::ranges::find(methods, head.method) == methods.end()) {
        refuse(501, "the method is none of GET, HEAD, POST, OPTIONS, PUT, PATCH, DELETE");
    }
}

void parse_header(std::string_view line, HttpHead& head, const HttpHeadLimits& limits) {
    if (line.size() + 2 > limits.header_bytes) {
        refuse(431, "a header has {} bytes, at most {} are taken", line.size(),
               limits.header_bytes - 2);
    }
    if (head.headers.size() == limits.headers) {
        refuse(431, "there are more than {} headers", limits.headers);
    }
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) {
        refuse(400, "header {} is not NAME: VALUE", head.headers.size() + 1);
    }
    std::string name(line.substr(0, colon));
    std::ranges::transform(name, name.begin(), lower);
    const std::string_view value = trimmed(line.substr(colon + 1));
    const auto control = [](char c) {
        return (static_cast<unsigned char>(c) < ' ' && c != '\t') || c == '\x7f';
    };
    if (std::ranges::any_of(value, control)) {
        refuse(400, "the value of header {} holds a control character", head.headers.size() + 1);
    }
    head.headers.emplace_back(std::move(name), value);
}

/// How long the body is: the one question on which two readers must never differ.
void decide_body(HttpHead& head) {
    for (const auto& [name, value] : head.headers) {
        if (name == "content-length") {
            uint64_t length = 0;
            const char* const end = value.data() + value.size();
            const auto [stop, error] = std::from_chars(value.data(), end, length);
            const bool plain = std::ranges::all_of(value, is_digit);
            if (!plain || error != std::errc{} || stop != end) {
                refuse(400, "Content-Length is not a whole number");
            }
            if (head.content_length) refuse(400, "there is more than one Content-Length");
            head.content_length = length;
        } else if (name == "transfer-encoding") {
            if (head.chunked) refuse(400, "there is more than one Transfer-Encoding");
            if (!same_ignoring_case(value, "chunked")) {
                refuse(501, "Transfer-Encoding is not chunked");
            }
            head.chunked = true;
        }
    }
    if (head.chunked && head.content_length) {
        refuse(400, "there are both Content-Length and Transfer-Encoding");
    }
    if (head.chunked && head.http_1_0) refuse(400, "HTTP/1.0 has no Transfer-Encoding");
}

void decide_connection(HttpHead& head) {
    head.close = head.http_1_0;
    for (const auto& [name, value] : head.headers) {
        if (name != "connection") continue;
        if (same_ignoring_case(value, "keep-alive")) head.close = false;
        if (same_ignoring_case(value, "close")) head.close = true;
    }
}

}  // namespace

bool same_ignoring_case(std::string_view a, std::string_view b) {
    return std::ranges::equal(a, b, {}, lower, lower);
}

std::string_view HttpHead::path() const {
    return std::string_view(target).substr(0, target.find_first_of("?#"));
}

std::string_view HttpHead::header(std::string_view name) const {
    for (const auto& [n, value] : headers) {
        if (n == name) return value;
    }
    return {};
}

bool HttpHead::has(std::string_view name) const {
    return std::ranges::any_of(headers, [&](const auto& header) { return header.first == name; });
}

HttpHead parse_http_head(std::string_view text, const HttpHeadLimits& limits) {
    HttpHead head;
    parse_first_line(take_line(text), head, limits);
    for (std::string_view line = take_line(text); !line.empty(); line = take_line(text)) {
        parse_header(line, head, limits);
    }
    const auto n_hosts =
        std::ranges::count(head.headers, "host", &std::pair<std::string, std::string>::first);
    if (n_hosts > 1 || (n_hosts == 0 && !head.http_1_0)) {
        refuse(400, "there is {} Host header", n_hosts == 0 ? "no" : "more than one");
    }
    decide_body(head);
    decide_connection(head);
    return head;
}

std::string print_for_handler(const HttpHead& head) {
    std::string text = fmt::format("{} {} {}\r\n", head.method, head.target,
                                   head.http_1_0 ? "HTTP/1.0" : "HTTP/1.1");
    constexpr std::array<std::string_view, 6> wanted{
        "host", "user-agent", "content-type", "content-length", "transfer-encoding", "expect"};
    for (const auto& [name, value] : head.headers) {
        if (std::ranges::find(wanted, name) == wanted.end()) continue;
        // In the one spelling that cpp-httplib knows, as the last line's.
        text += fmt::format("{}: {}\r\n", name, name == "expect" ? "100-continue" : value);
    }
    text += head.close ? "Connection: close\r\n\r\n" : "Connection: Keep-Alive\r\n\r\n";
    return text;
}

}  // namespace pleat
