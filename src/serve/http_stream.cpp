#include "serve/http_stream.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "serve/http_error.h"

namespace pleat {
namespace {

constexpr size_t receive_bytes = 16 << 10;
/// A body may take a second more for each of these.
constexpr size_t slowest_bytes_per_second = 16 << 10;

#ifdef MSG_NOSIGNAL
constexpr int send_flags = MSG_NOSIGNAL;
#else
constexpr int send_flags = 0;  // cpp-httplib has the process ignore SIGPIPE
#endif

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK; }

}  // namespace

HttpStream::Wait HttpStream::wait_for(short events, Clock::time_point deadline) const {
    while (true) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
        pollfd poll{.fd = fd_, .events = events, .revents = 0};
        const int patience = static_cast<int>(std::clamp<int64_t>(left.count(), 0, INT32_MAX));
        const int n = ::poll(&poll, 1, patience);
        if (n > 0) return (poll.revents & POLLNVAL) != 0 ? Wait::failed : Wait::ready;
        if (n == 0) return Wait::timed_out;
        if (errno != EINTR) return Wait::failed;
    }
}

ssize_t HttpStream::receive(char* to, size_t size, Clock::time_point deadline) {
    receive_timed_out_ = false;
    while (true) {
        const ssize_t n = ::recv(fd_, to, size, 0);
        if (n >= 0) return n;
        if (errno == EINTR) continue;
        if (!would_block()) return -1;
        const Wait wait = wait_for(POLLIN, deadline);
        receive_timed_out_ = wait == Wait::timed_out;
        if (wait != Wait::ready) return -1;
    }
}

ssize_t HttpStream::receive_more(Clock::time_point deadline) {
    std::array<char, receive_bytes> bytes{};
    const ssize_t n = receive(bytes.data(), bytes.size(), deadline);
    if (n > 0) {
        received_.erase(0, received_read_);
        received_read_ = 0;
        received_.append(bytes.data(), static_cast<size_t>(n));
    }
    return n;
}

bool HttpStream::await_request(std::chrono::milliseconds patience,
                               const std::function<void()>& on_input) {
    const Clock::time_point deadline = Clock::now() + patience;
    while (true) {
        // An empty line before a request is forgiven, as HTTP asks for.
        while (received_read_ < received_.size() &&
               (received_[received_read_] == '\r' || received_[received_read_] == '\n')) {
            ++received_read_;
        }
        if (received_read_ < received_.size()) return true;
        if (wait_for(POLLIN, deadline) != Wait::ready) return false;
        on_input();
        if (receive_more(deadline) <= 0) return false;
    }
}

void HttpStream::check_head_so_far() const {
    const std::string_view head = std::string_view(received_).substr(received_read_);
    // A TLS client's first byte, say: it would wait for an answer to what is no request.
    if (head.front() < 'A' || head.front() > 'z') {
        throw RequestError(400, "this is no HTTP request (HTTPS is not served)");
    }
    const size_t line = head.find("\r\n");
    if (std::min(line, head.size()) > settings_.max_uri_bytes + 32) {
        throw RequestError(414, fmt::format("the first line has more than {} bytes",
                                            settings_.max_uri_bytes + 32));
    }
    for (size_t i = head.find('\n'); i != std::string_view::npos; i = head.find('\n', i + 1)) {
        if (i == 0 || head[i - 1] != '\r') {
            throw RequestError(400, "a line of the request's head does not end in CR LF");
        }
    }
    if (head.size() > settings_.max_header_bytes) {
        throw RequestError(
            431, fmt::format("the headers have more than {} bytes", settings_.max_header_bytes));
    }
}

std::optional<std::string> HttpStream::read_head(std::chrono::milliseconds patience) {
    constexpr std::string_view blank_line = "\r\n\r\n";
    const Clock::time_point deadline = Clock::now() + patience;
    while (true) {
        const size_t end = received_.find(blank_line, received_read_);
        const size_t size = end + blank_line.size() - received_read_;
        if (end != std::string::npos && size <= settings_.max_header_bytes) {
            std::string head = received_.substr(received_read_, size);
            received_read_ += size;
            return head;
        }
        check_head_so_far();
        if (receive_more(deadline) > 0) continue;
        if (!receive_timed_out_) return {};
        throw RequestError(408, "the request's head did not come in time");
    }
}

void HttpStream::begin_body(std::string head) {
    head_ = std::move(head);
    head_read_ = 0;
    body_bytes_ = 0;
    body_begin_ = Clock::now();
    body_timed_out_ = false;
    body_ended_ = false;
}

ssize_t HttpStream::read(char* to, size_t size) {
    if (head_read_ < head_.size()) {
        const size_t n = head_.copy(to, size, head_read_);
        head_read_ += n;
        return static_cast<ssize_t>(n);
    }
    if (body_timed_out_ || body_ended_) return -1;
    if (received_read_ == received_.size()) {
        const Clock::time_point deadline =
            body_begin_ + settings_.body_time +
            std::chrono::milliseconds(body_bytes_ * 1000 / slowest_bytes_per_second);
        const ssize_t n = receive_more(deadline);
        body_timed_out_ = n < 0 && receive_timed_out_;
        if (n <= 0) return n;
        body_bytes_ += static_cast<size_t>(n);
    }
    const size_t n = received_.copy(to, size, received_read_);
    received_read_ += n;
    return static_cast<ssize_t>(n);
}

ssize_t HttpStream::write(const char* from, size_t size) {
    if (given_up_) return -1;
    size_t done = 0;
    while (done < size) {
        const ssize_t n = ::send(fd_, from + done, size - done, send_flags);
        if (n >= 0) {
            done += static_cast<size_t>(n);
        } else if (errno != EINTR) {
            if (!would_block()) return -1;
            if (wait_for(POLLOUT, Clock::now() + settings_.write_time) != Wait::ready) return -1;
        }
    }
    return static_cast<ssize_t>(size);
}

void HttpStream::linger() {
    ::shutdown(fd_, SHUT_WR);
    const Clock::time_point deadline = Clock::now() + std::chrono::seconds(1);
    std::array<char, receive_bytes> bytes{};
    while (Clock::now() < deadline && receive(bytes.data(), bytes.size(), deadline) > 0) {
    }
}

bool HttpStream::is_readable() const {
    return head_read_ < head_.size() || received_read_ < received_.size();
}

bool HttpStream::wait_readable() const {
    return is_readable() || wait_for(POLLIN, Clock::now() + settings_.body_time) == Wait::ready;
}

bool HttpStream::wait_writable() const {
    return wait_for(POLLOUT, Clock::now() + settings_.write_time) == Wait::ready && is_peer_alive();
}

bool HttpStream::is_peer_alive() const {
    pollfd poll{.fd = fd_, .events = POLLRDHUP, .revents = 0};
    if (::poll(&poll, 1, 0) <= 0) return true;
    if ((poll.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0 || probe_.empty()) return false;
    if (probed_) return true;
    // One that has closed answers with a reset, which the next look sees.
    const ssize_t n = ::send(fd_, probe_.data(), probe_.size(), send_flags);
    probed_ = n > 0;
    return n == static_cast<ssize_t>(probe_.size()) || (n < 0 && would_block());
}

void HttpStream::get_remote_ip_and_port(std::string& ip, int& port) const {
    ip.clear();
    port = 0;
}

void HttpStream::get_local_ip_and_port(std::string& ip, int& port) const {
    ip.clear();
    port = 0;
}

}  // namespace pleat
