#include "serve/http_connections.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

namespace pleat {
namespace {

using Clock = std::chrono::steady_clock;

/// What a client that has begun to ask may take before it can be dropped, and one that was turned
/// away before its connection is closed.
constexpr std::chrono::milliseconds grace{1000};
constexpr size_t most_refused = 64;
constexpr size_t most_leaving = 64;

#ifdef MSG_NOSIGNAL
constexpr int send_flags = MSG_NOSIGNAL | MSG_DONTWAIT;
#else
constexpr int send_flags = MSG_DONTWAIT;
#endif

bool has_input(int fd) {
    char byte = 0;
    return ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/// A socket that is closed with input left would take from its client what it has not read yet.
void take_input(int fd) {
    constexpr int most_reads = 8;
    std::array<char, 16 << 10> bytes{};
    for (int i = 0; i < most_reads; ++i) {
        if (::recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT) <= 0) return;
    }
}

}  // namespace

Connections::~Connections() {
    drop_all();
    wait_for_end();
}

void Connections::start(Socket socket, const Serve& serve) {
    const std::lock_guard lock(mutex_);
    if (closing_) return;
    const auto living = [](const Connection& c) { return !c.done_ && !c.dropped_ && !c.refused_; };
    const auto refused = [](const Connection& c) { return !c.done_ && c.refused_; };
    const bool full = static_cast<size_t>(std::ranges::count_if(all_, living)) >= most_;
    const bool refuse = full && !make_room_locked();
    if (refuse && std::ranges::count_if(all_, refused) >= static_cast<int>(most_refused)) {
        turn_away(std::move(socket));
        return;
    }
    Connection& connection = all_.emplace_back();
    connection.client_ = peer_address(socket.fd());
    connection.socket_ = std::move(socket);
    connection.refused_ = refuse;
    connection.since_ = Clock::now();
    try {
        connection.thread_ = std::thread([this, &connection, serve] {
            serve(connection);
            const std::lock_guard end(mutex_);
            connection.socket_.close();
            connection.done_ = true;
            ended_.notify_all();
        });
    } catch (const std::system_error&) {  // no more threads: as good as full
        turn_away(std::move(connection.socket_));
        all_.pop_back();
    }
}

void Connections::turn_away(Socket socket) {
    // It is a new one: its buffer is empty and takes this at once.
    [[maybe_unused]] const ssize_t n =
        ::send(socket.fd(), refusal_.data(), refusal_.size(), send_flags);
    ::shutdown(socket.fd(), SHUT_WR);
    leaving_.push_back({.socket = std::move(socket), .since = Clock::now()});
    if (leaving_.size() <= most_leaving) return;
    take_input(leaving_.front().socket.fd());
    leaving_.pop_front();
}

bool Connections::enter(Connection& connection, ConnectionState state) {
    const std::lock_guard lock(mutex_);
    if (connection.dropped_ || (closing_ && state == ConnectionState::idle)) return false;
    connection.state_ = state;
    connection.since_ = Clock::now();
    return true;
}

void Connections::drop(Connection& connection) {
    connection.dropped_ = true;
    if (!connection.done_) ::shutdown(connection.fd(), SHUT_RDWR);
}

bool Connections::make_room_locked() {
    const Clock::time_point young = Clock::now() - grace;
    const auto order = [](const Connection& c) {
        return std::pair(c.state_ == ConnectionState::reading, c.since_);
    };
    Connection* victim = nullptr;
    for (Connection& c : all_) {
        if (c.done_ || c.dropped_ || c.refused_ || c.state_ == ConnectionState::busy) continue;
        if (victim != nullptr && order(*victim) < order(c)) continue;
        // Also one whose thread has not seen yet that it asks.
        const bool asks = c.state_ == ConnectionState::reading || has_input(c.fd());
        if (asks && c.since_ > young) continue;
        victim = &c;
    }
    if (victim != nullptr) drop(*victim);
    return victim != nullptr;
}

bool Connections::make_room() {
    const std::lock_guard lock(mutex_);
    return make_room_locked();
}

void Connections::reap() {
    std::list<Connection> ended;
    {
        const std::lock_guard lock(mutex_);
        for (auto c = all_.begin(); c != all_.end();) {
            const auto next = std::next(c);
            if (c->done_) ended.splice(ended.end(), all_, c);
            c = next;
        }
        const Clock::time_point gone = Clock::now() - grace;
        while (!leaving_.empty() && leaving_.front().since < gone) {
            take_input(leaving_.front().socket.fd());
            leaving_.pop_front();
        }
    }
    for (Connection& connection : ended) connection.thread_.join();
}

void Connections::drop_those_in(ConnectionState state) {
    for (Connection& c : all_) {
        if (c.state_ == state) drop(c);
    }
}

void Connections::drop_waiting() {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    drop_those_in(ConnectionState::idle);
    drop_those_in(ConnectionState::fresh);
}

void Connections::drop_all() {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    for (Connection& connection : all_) drop(connection);
}

void Connections::wait_for_end() {
    {
        std::unique_lock lock(mutex_);
        const auto ended = [&] {
            return std::ranges::all_of(all_, [](const Connection& c) { return c.done_; });
        };
        if (!ended_.wait_for(lock, grace, ended)) drop_those_in(ConnectionState::reading);
        ended_.wait(lock, ended);
    }
    reap();
}

size_t Connections::size() const {
    const std::lock_guard lock(mutex_);
    return static_cast<size_t>(
        std::ranges::count_if(all_, [](const Connection& c) { return !c.done_; }));
}

}  // namespace pleat
