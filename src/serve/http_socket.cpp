#include "serve/http_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/error.h"

namespace pleat {
namespace {

/// Waiting to be accepted; the kernel takes the smaller of this and its own limit.
constexpr int backlog = 1024;

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses addresses_of(const std::string& host, int port) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    const int error = ::getaddrinfo(host.empty() ? nullptr : host.c_str(),
                                    std::to_string(port).c_str(), &hints, &found);
    if (error != 0) {
        fail("--host {}: {}; give an address of this machine, such as 127.0.0.1 or 0.0.0.0", host,
             ::gai_strerror(error));
    }
    return {found, &::freeaddrinfo};
}

void set_option(int fd, int level, int option, int value) {
    ::setsockopt(fd, level, option, &value, sizeof(value));
}

void set_flags(int fd) {
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
}

struct Bound {
    bool loopback = false;
    int port = 0;
};

Bound bound_to(int fd) {
    sockaddr_storage storage{};
    socklen_t size = sizeof(storage);
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size);
    if (storage.ss_family == AF_INET6) {
        sockaddr_in6 address{};
        std::memcpy(&address, &storage, sizeof(address));
        return {.loopback = IN6_IS_ADDR_LOOPBACK(&address.sin6_addr),
                .port = ntohs(address.sin6_port)};
    }
    sockaddr_in address{};
    std::memcpy(&address, &storage, sizeof(address));
    return {.loopback = (ntohl(address.sin_addr.s_addr) >> 24) == 127,
            .port = ntohs(address.sin_port)};
}

}  // namespace

void Socket::close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

Listener listen_on(const std::string& host, int port) {
    const Addresses addresses = addresses_of(host, port);
    int error = 0;
    for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) {
        Socket socket(::socket(a->ai_family, a->ai_socktype, a->ai_protocol));
        if (!socket) {
            error = errno;
            continue;
        }
        set_flags(socket.fd());
        set_option(socket.fd(), SOL_SOCKET, SO_REUSEADDR, 1);
        // "::" stands for every address, of either version.
        if (a->ai_family == AF_INET6) set_option(socket.fd(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
        if (::bind(socket.fd(), a->ai_addr, a->ai_addrlen) != 0 ||
            ::listen(socket.fd(), backlog) != 0) {
            error = errno;
            continue;
        }
        const Bound bound = bound_to(socket.fd());
        return {.socket = std::move(socket), .port = bound.port, .loopback = bound.loopback};
    }
    fail("cannot listen on {}:{}: {}{}", host, port, std::strerror(error),
         error == EADDRINUSE ? "; another program has that port: choose one with --port, 0 = any "
                               "that is free"
                             : "");
}

void reserve_descriptors(size_t n) {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= n) return;
    if (limit.rlim_max < n) {
        fail(
            "{} open files are needed, and this process may have {}: raise that (ulimit -n) or "
            "lower --max-connections",
            n, limit.rlim_max);
    }
    limit.rlim_cur = n;
    ::setrlimit(RLIMIT_NOFILE, &limit);
}

Socket accept_from(const Listener& listener) {
    Socket socket(::accept(listener.socket.fd(), nullptr, nullptr));
    if (!socket) return socket;
    set_flags(socket.fd());
    set_option(socket.fd(), IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(socket.fd(), SOL_SOCKET, SO_KEEPALIVE, 1);
    return socket;
}

std::string peer_address(int fd) {
    sockaddr_storage storage{};
    socklen_t size = sizeof(storage);
    auto* const address = reinterpret_cast<sockaddr*>(&storage);
    std::array<char, NI_MAXHOST> text{};
    if (::getpeername(fd, address, &size) != 0 ||
        ::getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) {
        return "unknown";
    }
    return text.data();
}

std::pair<Socket, Socket> wake_up_pipe() {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) fail("cannot make a pipe: {}", std::strerror(errno));
    for (const int fd : ends) set_flags(fd);
    return {Socket(ends[0]), Socket(ends[1])};
}

}  // namespace pleat
