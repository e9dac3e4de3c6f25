#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace pleat::test {

/// A client that can misbehave: a plain socket to a port of this machine.
class RawClient {
  public:
    explicit RawClient(int port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(static_cast<uint16_t>(port));
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
            throw std::runtime_error("cannot connect to the server");
        }
    }
    ~RawClient() { vanish(); }
    RawClient(RawClient&& other) noexcept
        : fd_(std::exchange(other.fd_, -1)), received_(std::move(other.received_)) {}
    RawClient& operator=(RawClient&&) = delete;

    /// Sends it all, unless the server has closed. Only for what fits into buffers, or is read.
    RawClient& send(std::string_view text) {
        while (!text.empty()) {
            const ssize_t n = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
            alive_ = n > 0;
            was_reset_ = n <= 0;
            if (n <= 0) break;
            text.remove_prefix(static_cast<size_t>(n));
        }
        return *this;
    }

    /// Reads until `end` has come; what came, also when it is cut short by the server's end or
    /// after `patience` without a byte (closed() and timed_out() tell).
    std::string read_until(std::string_view end,
                           std::chrono::milliseconds patience = std::chrono::seconds(20)) {
        while (received_.find(end) == std::string::npos && receive(patience)) {
        }
        const size_t at = received_.find(end);
        const size_t size = at == std::string::npos ? received_.size() : at + end.size();
        std::string text = received_.substr(0, size);
        received_.erase(0, size);
        return text;
    }

    /// Everything until the server closes.
    std::string read_all() {
        while (receive(std::chrono::seconds(20))) {
        }
        return std::exchange(received_, {});
    }

    /// One answer with Content-Length, head and body.
    std::string read_answer() {
        std::string answer = read_until("\r\n\r\n");
        constexpr std::string_view name = "Content-Length: ";
        const size_t at = answer.find(name);
        if (at == std::string::npos) return answer;
        const size_t size = std::stoul(answer.substr(at + name.size()));
        while (received_.size() < size && receive(std::chrono::seconds(20))) {
        }
        answer += received_.substr(0, size);
        received_.erase(0, size);
        return answer;
    }

    /// What can be sent still has a reader; for a second thread.
    bool alive() const { return alive_; }
    bool closed() const { return closed_; }
    /// The server closed without reading all: an answer could get lost on the way.
    bool was_reset() const { return was_reset_; }
    bool timed_out() const { return timed_out_; }
    /// So that little is on its way to a client that does not read.
    void shrink_receive_buffer() const {
        constexpr int bytes = 4096;
        ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
    }
    void half_close() const { ::shutdown(fd_, SHUT_WR); }
    /// As a process that dies: what it has not read is not waited for.
    void vanish() {
        if (fd_ >= 0) ::close(std::exchange(fd_, -1));
    }

  private:
    bool receive(std::chrono::milliseconds patience) {
        pollfd poll{.fd = fd_, .events = POLLIN, .revents = 0};
        timed_out_ = ::poll(&poll, 1, static_cast<int>(patience.count())) == 0;
        if (timed_out_) return false;
        std::array<char, 4096> bytes{};
        const ssize_t n = ::recv(fd_, bytes.data(), bytes.size(), 0);
        closed_ = n <= 0;
        was_reset_ = was_reset_ || n < 0;
        if (n > 0) received_.append(bytes.data(), static_cast<size_t>(n));
        return n > 0;
    }

    int fd_;
    std::string received_;
    std::atomic<bool> alive_ = true;
    bool closed_ = false;
    std::atomic<bool> was_reset_ = false;
    bool timed_out_ = false;
};

}  // namespace pleat::test
