#include "serve/http_server.h"

#include <fmt/format.h>
#include <httplib.h>
#include <poll.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <exception>
#include <utility>

#include "serve/http_connections.h"
#include "serve/http_error.h"
#include "serve/http_head.h"
#include "serve/http_policy.h"
#include "serve/http_socket.h"
#include "serve/http_stream.h"

namespace pleat {
namespace {

using Clock = std::chrono::steady_clock;

/// How long a client that is one too many has to send what it is not answered.
constexpr std::chrono::milliseconds refusal_time{1000};

/// The request that a connection's thread is at, for cpp-httplib's handlers, which know only its
/// text.
struct Exchange {
    Connection& connection;
    HttpStream& stream;
    HttpHeaders cors_headers = {};
    int status = 0;
    std::string body = {};  ///< for the log
};
thread_local Exchange* exchange = nullptr;

std::string answer_text(const HttpAnswer& answer, const HttpHeaders& more = {}) {
    std::string text =
        fmt::format("HTTP/1.1 {} {}\r\n", answer.status, httplib::status_message(answer.status));
    for (const HttpHeaders* const headers : {&answer.headers, &more}) {
        for (const auto& [name, value] : *headers) text += fmt::format("{}: {}\r\n", name, value);
    }
    if (!answer.body.empty()) text += "Content-Type: application/json; charset=utf-8\r\n";
    if (answer.status != 204) text += fmt::format("Content-Length: {}\r\n", answer.body.size());
    return text + "Connection: close\r\n\r\n" + answer.body;
}

RequestError too_many_connections() { return {503, "too many connections"}; }

/// What an event stream's readers skip: a chunk with a comment.
constexpr const char* event_stream_probe = "3\r\n:\n\n\r\n";
constexpr const char* head_probe = "HTTP/1.1 100 Continue\r\n\r\n";

/// What cpp-httplib finds wrong while it reads a body.
RequestError error_of_reading(int status) {
    if (exchange != nullptr && exchange->stream.body_timed_out()) {
        return {408, "the request's body did not come in time"};
    }
    switch (status) {
        case 400:
            return {400, "the request's body is not as its head says"};
        case 404:
            return {404, "there is no such path"};
        case 413:
            return {413, "the request's body is too large"};
        default:
            return {status, httplib::status_message(status)};
    }
}

}  // namespace

/// cpp-httplib reads a request that has been let through, calls its handler and writes what comes
/// of it; sockets, threads, deadlines and refusals are ours.
class HttpServer::Impl : private httplib::Server {
  public:
    explicit Impl(HttpSettings settings)
        : settings_(std::move(settings)),
          policy_(settings_),
          connections_(settings_.max_connections, answer_text(answer_of(too_many_connections()))),
          wake_up_(wake_up_pipe()) {
        set_payload_max_length(settings_.max_body_bytes);
        set_error_handler([](const httplib::Request&, httplib::Response& response) {
            if (response.body.empty()) set_error(response, error_of_reading(response.status));
            return HandlerResponse::Handled;
        });
        set_exception_handler([this](const httplib::Request& request, httplib::Response& response,
                                     const std::exception_ptr& thrown) {
            answer_exception(request, response, thrown);
        });
        set_post_routing_handler([this](const httplib::Request&, httplib::Response& response) {
            finish_head(response);
        });
    }

    void add(std::string_view method, const std::string& path, HttpHandler handler) {
        policy_.routes().add(method, path);
        const auto guarded = [this, handler = std::move(handler)](const httplib::Request& request,
                                                                  httplib::Response& response) {
            connections_.enter(exchange->connection, ConnectionState::busy);
            if (settings_.log_bodies) exchange->body = request.body;
            // cpp-httplib's own takes every client that has ended its sending for one that has
            // gone. The request is no constant: it only passes it on as one.
            const_cast<httplib::Request&>(request).is_connection_closed =
                [&stream = exchange->stream] { return !stream.is_peer_alive(); };
            try {
                handler(request, response);
            } catch (...) {
                answer_exception(request, response, std::current_exception());
            }
        };
        if (method == "GET") {
            Get(path, guarded);
        } else {
            Post(path, guarded);
        }
    }

    void set_ready() { ready_.store(true, std::memory_order_release); }

    int bind() {
        constexpr size_t others = 256;  // those being refused, the model's, libraries'
        reserve_descriptors(settings_.max_connections + others);
        listener_ = listen_on(settings_.host, settings_.port);
        policy_.set_loopback(listener_.loopback);
        svr_sock_ = listener_.socket.fd();  // cpp-httplib ends streams when it has none
        return listener_.port;
    }

    std::string url() const {
        const bool v6 = settings_.host.find(':') != std::string::npos;
        return fmt::format("http://{}{}{}:{}", v6 ? "[" : "", settings_.host, v6 ? "]" : "",
                           listener_.port);
    }

    void listen() {
        while (!stopping_.load()) {
            std::array<pollfd, 2> polls{
                pollfd{.fd = listener_.socket.fd(), .events = POLLIN, .revents = 0},
                pollfd{.fd = wake_up_.first.fd(), .events = POLLIN, .revents = 0}};
            ::poll(polls.data(), polls.size(), 1000);
            connections_.reap();
            while (!stopping_.load() && accept_one()) {
            }
        }
        listener_.socket.close();
        connections_.drop_waiting();
        connections_.wait_for_end();
    }

    void stop() {
        stopping_.store(true);
        [[maybe_unused]] const ssize_t n = ::write(wake_up_.second.fd(), "", 1);
    }

    void abort() {
        stop();
        svr_sock_ = INVALID_SOCKET;
        connections_.drop_all();
    }

    bool loopback() const { return listener_.loopback; }
    size_t n_connections() const { return connections_.size(); }

  private:
    bool accept_one() {
        Socket socket = accept_from(listener_);
        if (!socket) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                // Until a descriptor is free; the client waits in the kernel's queue.
                connections_.make_room();
                std::this_thread::sleep_for(std::chrono::milliseconds(10));
                connections_.reap();
            }
            return errno == ECONNABORTED || errno == EINTR;
        }
        connections_.start(std::move(socket), [this](Connection& connection) {
            try {
                serve(connection);
            } catch (const std::exception& error) {  // while an answer was under way: cut short
                log_error(fmt::format("{}: {}", connection.client(), error.what()));
            } catch (...) {
                log_error(fmt::format("{}: unknown exception", connection.client()));
            }
        });
        return true;
    }

    void serve(Connection& connection) {
        HttpStream stream(connection.fd(), settings_);
        const auto patience = connection.refused() ? refusal_time : settings_.idle_time;
        // Nobody may take one for idle whose request has been taken from its socket.
        const auto on_input = [&] { connections_.enter(connection, ConnectionState::reading); };
        bool again = true;
        while (again && stream.await_request(patience, on_input)) {
            again = connections_.enter(connection, ConnectionState::reading) &&
                    serve_one(connection, stream) &&
                    connections_.enter(connection, ConnectionState::idle);
        }
        connections_.enter(connection, ConnectionState::idle);
        stream.linger();
    }

    /// One request and its answer; true when another may follow.
    bool serve_one(Connection& connection, HttpStream& stream) {
        Exchange current{.connection = connection, .stream = stream};
        HttpHead head;
        Clock::time_point begin = Clock::now();
        bool again = false;
        try {
            const std::optional<std::string> text =
                stream.read_head(connection.refused() ? refusal_time : settings_.header_time);
            if (!text) return false;
            begin = Clock::now();
            head = parse_http_head(*text, {.uri_bytes = settings_.max_uri_bytes});
            current.cors_headers = policy_.cors_headers(head);
            if (connection.refused()) throw too_many_connections();
            if (const auto answer = policy_.refuse(head, ready_.load(std::memory_order_acquire))) {
                current.status = answer->status;
                stream.write(answer_text(*answer, current.cors_headers));
            } else {
                again = answer_with_httplib(current, head);
            }
        } catch (const RequestError& error) {
            current.status = error.status();
            stream.write(answer_text(answer_of(error), current.cors_headers));
        }
        log(current, head, begin);
        return again && !stopping_.load();
    }

    bool answer_with_httplib(Exchange& current, const HttpHead& head) {
        current.stream.begin_body(print_for_handler(head));
        current.stream.set_probe(head.http_1_0 ? "" : head_probe);
        // The pointer must not outlive what it points to, whatever a handler throws.
        struct Scope {
            explicit Scope(Exchange* now) { exchange = now; }
            ~Scope() { exchange = nullptr; }
        } const scope(&current);
        bool closed = false;
        const bool written = process_request(current.stream, current.connection.client(), 0, {}, 0,
                                             stopping_.load(), closed, [](httplib::Request&) {});
        return written && !closed && current.status < 400;
    }

    void answer_exception(const httplib::Request& request, httplib::Response& response,
                          const std::exception_ptr& thrown) const {
        response = {};
        try {
            std::rethrow_exception(thrown);
        } catch (const RequestError& error) {
            set_error(response, error);
            return;
        } catch (const std::exception& error) {
            log_error(fmt::format("{} {}: {}", request.method, request.path, error.what()));
        } catch (...) {
            log_error(fmt::format("{} {}: unknown exception", request.method, request.path));
        }
        set_error(response, 500, "internal error; see the server's log");
    }

    void finish_head(httplib::Response& response) const {
        if (exchange == nullptr) return;
        exchange->status = response.status;
        HttpStream& stream = exchange->stream;
        // cpp-httplib would read a body to its end even when the connection is to be closed.
        if (response.status >= 400) stream.end_body();
        if (response.status == client_closed_request) stream.give_up();
        const bool events = response.get_header_value("Transfer-Encoding") == "chunked" &&
                            response.get_header_value("Content-Type") == "text/event-stream";
        stream.set_probe(events ? event_stream_probe : "");
        for (const auto& [name, value] : exchange->cors_headers) response.set_header(name, value);
        if (!response.has_header("Keep-Alive")) return;
        response.headers.erase("Keep-Alive");
        const auto idle = std::chrono::duration_cast<std::chrono::seconds>(settings_.idle_time);
        response.set_header("Keep-Alive", fmt::format("timeout={}", idle.count()));
    }

    void log(const Exchange& current, const HttpHead& head, Clock::time_point begin) const {
        if (!settings_.log) return;
        const std::chrono::duration<double, std::milli> took = Clock::now() - begin;
        settings_.log({.client = current.connection.client(),
                       .method = head.method,
                       .path = std::string(head.path()),
                       .status = current.status,
                       .milliseconds = took.count(),
                       .body = current.body});
    }

    void log_error(const std::string& line) const {
        if (settings_.log_error) settings_.log_error(line);
    }

    const HttpSettings settings_;
    HttpPolicy policy_;
    std::atomic<bool> ready_ = false;
    std::atomic<bool> stopping_ = false;
    Listener listener_;
    Connections connections_;
    std::pair<Socket, Socket> wake_up_;
};

HttpServer::HttpServer(HttpSettings settings)
    : impl_(std::make_unique<Impl>(std::move(settings))) {}

HttpServer::~HttpServer() { impl_->abort(); }

void HttpServer::get(const std::string& path, HttpHandler handler) {
    impl_->add("GET", path, std::move(handler));
}

void HttpServer::post(const std::string& path, HttpHandler handler) {
    impl_->add("POST", path, std::move(handler));
}

void HttpServer::ready() { impl_->set_ready(); }
int HttpServer::bind() { return impl_->bind(); }
std::string HttpServer::url() const { return impl_->url(); }
bool HttpServer::loopback() const { return impl_->loopback(); }
void HttpServer::listen() { impl_->listen(); }
void HttpServer::stop() { impl_->stop(); }
void HttpServer::abort() { impl_->abort(); }
size_t HttpServer::n_connections() const { return impl_->n_connections(); }

}  // namespace pleat
