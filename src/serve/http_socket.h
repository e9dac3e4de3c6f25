#pragma once

#include <cstddef>
#include <string>
#include <utility>

namespace pleat {

/// Owns a file descriptor.
class Socket {
  public:
    Socket() = default;
    explicit Socket(int fd) : fd_(fd) {}
    Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Socket& operator=(Socket&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Socket() { close(); }

    int fd() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }
    void close();

  private:
    int fd_ = -1;
};

/// A socket that listens, without blocking.
struct Listener {
    Socket socket = {};
    int port = 0;
    bool loopback = false;  ///< only this machine can reach it
};

/// Port 0: any free one. Throws Error when the host has no address or the address is taken.
Listener listen_on(const std::string& host, int port);

/// Makes sure that this process may have so many files open. Throws Error with both numbers.
void reserve_descriptors(size_t n);

/// The next connection, without blocking; none when there is none. errno says why.
Socket accept_from(const Listener& listener);
/// "127.0.0.1", "::1": the other end's address.
std::string peer_address(int fd);

/// For wake-ups: `first` becomes readable when something is written to `second`.
std::pair<Socket, Socket> wake_up_pipe();

}  // namespace pleat
