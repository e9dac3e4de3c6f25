#include "support/server_process.h"

#include <csignal>

#include "base/error.h"

namespace pleat::test {
namespace {

std::string lower(std::string text) {
    for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return text;
}

std::string joined_chunks(std::string_view frames) {
    std::string body;
    while (true) {
        const size_t line = frames.find("\r\n");
        if (line == std::string_view::npos) return body;  // cut short
        const size_t size = std::stoul(std::string(frames.substr(0, line)), nullptr, 16);
        if (size == 0) return body;
        body += frames.substr(line + 2, size);
        if (frames.size() < line + 2 + size + 2) return body;
        frames.remove_prefix(line + 2 + size + 2);
    }
}

std::vector<std::string> serve_arguments(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "serve");
    for (const char* more : {"--port", "0", "-t", "1"}) arguments.emplace_back(more);
    return arguments;
}

}  // namespace

std::string HttpResponse::header(std::string_view name) const {
    const std::string wanted = "\r\n" + lower(std::string(name)) + ": ";
    const size_t at = lower(head).find(wanted);
    if (at == std::string::npos) return {};
    const size_t begin = at + wanted.size();
    return head.substr(begin, head.find("\r\n", begin) - begin);
}

HttpResponse read_response(const std::string& text) {
    constexpr std::string_view version = "HTTP/1.1 ";
    const size_t end = text.find("\r\n\r\n");
    if (!text.starts_with(version) || end == std::string::npos) {
        fail("this is no HTTP response: \"{}\"", text.substr(0, 200));
    }
    HttpResponse response;
    response.status = std::stoi(text.substr(version.size()));
    response.head = text.substr(0, end + 2);
    response.body = text.substr(end + 4);
    if (response.header("Transfer-Encoding") == "chunked") {
        response.body = joined_chunks(response.body);
    }
    return response;
}

ServerProcess::ServerProcess(std::vector<std::string> arguments)
    : process_(serve_arguments(std::move(arguments))) {
    constexpr std::string_view sign = "listening on http://";
    std::string log;
    const auto line_is_there = [&] {
        log = process_.err();
        const size_t at = log.find(sign);
        return at != std::string::npos && log.find('\n', at) != std::string::npos;
    };
    if (!soon([&] { return line_is_there() || process_.ended(); }) || !line_is_there()) {
        fail("pleat serve does not listen: {}", log);
    }
    const size_t end = log.find('\n', log.find(sign));
    port_ = std::stoi(log.substr(log.rfind(':', end) + 1));
}

std::string ServerProcess::url() const { return "http://127.0.0.1:" + std::to_string(port_); }

std::string ServerProcess::get_text(const std::string& path, const std::string& headers) {
    return "GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\n" + headers + "\r\n";
}

std::string ServerProcess::post_text(const std::string& path, const std::string& body,
                                     const std::string& headers) {
    return "POST " + path +
           " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\n" + headers + "\r\n" + body;
}

HttpResponse ServerProcess::request(const std::string& text) const {
    return read_response(connect().send(text).read_all());
}

HttpResponse ServerProcess::get(const std::string& path, const std::string& headers) const {
    return request(get_text(path, headers + "Connection: close\r\n"));
}

HttpResponse ServerProcess::post(const std::string& path, const nlohmann::json& body,
                                 const std::string& headers) const {
    return request(post_text(path, body.dump(), headers + "Connection: close\r\n"));
}

ToolRun ServerProcess::stop() {
    send(SIGTERM);
    return wait();
}

}  // namespace pleat::test
